// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Character {
    /// The number of terminal columns that the character takes: 0, 1 or 2. It is larger only if several letters form
    /// one character.
    ///
    /// It is 2 for wide East Asian characters (UAX #11) and for emoji (UTS #51), including emoji with a variation
    /// selector, joined emoji and flags. It is 0 for combining marks and control characters, and 1 for all others.
    var columns: Int {
        let scalars = unicodeScalars
        guard let first = scalars.first else { return 0 }
        if scalars.count == 1 { return first.columns }
        // Text presentation (U+FE0E) makes an emoji narrow, unless its character is wide.
        if scalars.contains("\u{FE0E}") { return first.isWide ? 2 : 1 }
        if scalars.contains("\u{FE0F}") { return 2 }
        if first.isRegionalIndicator || first.properties.isEmojiPresentation { return 2 }
        return scalars.reduce(0) { $0 + $1.columns }
    }
}

extension String {
    /// The number of terminal columns that the text takes.
    var columns: Int { reduce(0) { $0 + $1.columns } }
}

extension Unicode.Scalar {
    fileprivate var isRegionalIndicator: Bool { (0x1F1E6...0x1F1FF).contains(value) }

    fileprivate var columns: Int {
        // The common case: printable ASCII.
        if (0x20..<0x7F).contains(value) { return 1 }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .control: return 0
        // The soft hyphen is the only format character that is shown.
        case .format: return value == 0xAD ? 1 : 0
        default: break
        }
        // Hangul vowels and final consonants combine into a syllable.
        if (0x1160...0x11FF).contains(value) || (0xD7B0...0xD7FF).contains(value) { return 0 }
        if isWide { return 2 }
        return properties.isEmojiPresentation && !isRegionalIndicator ? 2 : 1
    }

    /// Whether EastAsianWidth.txt of Unicode 16 lists the scalar as wide or full width. Emoji are not in the list
    /// below, because `columns` treats them separately.
    fileprivate var isWide: Bool {
        guard value >= 0x1100 else { return false }
        var low = 0
        var high = Self.wide.count
        while low < high {
            let middle = (low + high) / 2
            if Self.wide[middle].upperBound < value { low = middle + 1 } else { high = middle }
        }
        return low < Self.wide.count && Self.wide[low].contains(value)
    }

    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2329...0x232A, 0x2630...0x2637, 0x268A...0x268F, 0x2E80...0x2E99, 0x2E9B...0x2EF3,
        0x2F00...0x2FD5, 0x2FF0...0x303E, 0x3041...0x3096, 0x3099...0x30FF, 0x3105...0x312F, 0x3131...0x318E,
        0x3190...0x31E5, 0x31EF...0x321E, 0x3220...0x3247, 0x3250...0xA48C, 0xA490...0xA4C6, 0xA960...0xA97C,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE52, 0xFE54...0xFE66, 0xFE68...0xFE6B,
        0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x16FE4, 0x16FF0...0x16FF1, 0x17000...0x187F7, 0x18800...0x18CD5,
        0x18CFF...0x18D08, 0x1AFF0...0x1AFF3, 0x1AFF5...0x1AFFB, 0x1AFFD...0x1AFFE, 0x1B000...0x1B122,
        0x1B132...0x1B132,
        0x1B150...0x1B152, 0x1B155...0x1B155, 0x1B164...0x1B167, 0x1B170...0x1B2FB, 0x1D300...0x1D356,
        0x1D360...0x1D376,
        0x1F200...0x1F202, 0x1F210...0x1F23B, 0x1F240...0x1F248, 0x1F250...0x1F251, 0x1F260...0x1F265,
        0x20000...0x2FFFD,
        0x30000...0x3FFFD,
    ]
}
