// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The name of an account, for people.
///
/// A name has 1 to 64 characters after Unicode normalization. It has no control characters, no invisible characters,
/// and no white space at either end. Names with equal ``key``s are equal.
package struct NickName: Sendable, Hashable, CustomStringConvertible {
    /// The form for display: Unicode NFC.
    package let rawValue: String
    /// The form for comparisons: NFKC, case folded.
    package let key: String

    /// The longest name, in characters.
    package static let maxCharacters = 64
    /// The longest name, in bytes of UTF-8. This limit applies before the normalization.
    package static let maxBytes = 256

    /// Checks and normalizes a name.
    ///
    /// - Parameters:
    ///   - text: the name as typed.
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package init(_ text: String) throws(HermesError) {
        guard !text.isEmpty else { throw Self.refusal("must not be empty") }
        guard text.utf8.count <= Self.maxBytes else {
            throw Self.refusal("is longer than \(Self.maxBytes) bytes", .tooLarge)
        }
        let shown: String
        let key: String
        if text.utf8.allSatisfy({ $0 < 0x80 }) {
            shown = text
            key = text.lowercased()
        } else {
            shown = text.precomposedStringWithCanonicalMapping
            key = Self.folded(text)
        }
        guard !key.isEmpty, !shown.isEmpty else { throw Self.refusal("must not be empty") }
        guard key.count <= Self.maxCharacters, key.utf8.count <= 2 * Self.maxBytes else {
            throw Self.refusal("is longer than \(Self.maxCharacters) characters", .tooLarge)
        }
        for scalar in shown.unicodeScalars where !Self.isAllowed(scalar) {
            throw Self.refusal("holds a control or invisible character")
        }
        for scalar in key.unicodeScalars where !Self.isAllowed(scalar) {
            throw Self.refusal("holds a control or invisible character")
        }
        for end in [key.unicodeScalars.first, key.unicodeScalars.last, shown.unicodeScalars.first] {
            if let end, end.properties.isWhitespace { throw Self.refusal("begins or ends with white space") }
        }
        self.rawValue = shown
        self.key = key
    }

    /// Checks and normalizes a new name for an account (``checkAsNew()``).
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package init(new text: String) throws(HermesError) {
        try self.init(text)
        try checkAsNew()
    }

    /// Refuses some names that older accounts may still have: names with a character that is drawn as a blank, with two
    /// blanks in a row, or with the capital ẞ. The form for comparisons does not fold ẞ to ss.
    ///
    /// - Throws: `.invalidArgument`.
    func checkAsNew() throws(HermesError) {
        var isAfterBlank = false
        for scalar in (rawValue + "\0" + key).unicodeScalars {
            guard scalar != "\u{1E9E}" else { throw Self.refusal("holds the capital ẞ; write ß or SS") }
            let isBlank = scalar.properties.isWhitespace
            guard !Self.isDrawnEmpty(scalar), !isBlank || !isAfterBlank else {
                throw Self.refusal("holds a character that is drawn as a blank, or two blanks in a row")
            }
            isAfterBlank = isBlank
        }
    }

    package var description: String { rawValue }

    package static func == (left: Self, right: Self) -> Bool { left.key == right.key }

    package func hash(into hasher: inout Hasher) { hasher.combine(key) }

    private static func refusal(_ reason: String, _ code: HermesError.Code = .invalidArgument) -> HermesError {
        HermesError(code, "the nick name \(reason)")
    }

    /// Returns a text in the form for comparisons. The text is converted to upper case first, so that characters with
    /// several lower-case forms (ß and ss, σ and ς) fold alike.
    private static func folded(_ text: String) -> String {
        let compatible = text.precomposedStringWithCompatibilityMapping
        let lower = compatible.uppercased().lowercased().precomposedStringWithCompatibilityMapping
        var key = String.UnicodeScalarView()
        key.append(contentsOf: lower.unicodeScalars.filter { !isEmojiStyle($0) })
        // The key is normalized again, because a combining mark may now follow another character. So equal keys have
        // equal bytes, also in the store.
        return String(key).precomposedStringWithCompatibilityMapping
    }

    /// Returns a text in the form for comparisons, for a search in names. The result is empty if the text is too long.
    static func searchKey(_ text: String) -> String {
        guard text.utf8.count <= maxBytes else { return "" }
        return text.utf8.allSatisfy { $0 < 0x80 } ? text.lowercased() : folded(text)
    }

    /// Whether the scalar is a variation selector for the text or the emoji form of a character. These forms do not
    /// distinguish names.
    private static func isEmojiStyle(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value == 0xFE0E || scalar.value == 0xFE0F
    }

    /// Whether a scalar is drawn as a blank although it is not white space, or is white space that is not drawn as a
    /// blank. BRAILLE PATTERN BLANK, OBJECT REPLACEMENT CHARACTER and MUSICAL SYMBOL NULL NOTEHEAD are drawn as blanks.
    /// OGHAM SPACE MARK is white space that is drawn as a line.
    private static func isDrawnEmpty(_ scalar: Unicode.Scalar) -> Bool {
        [0x2800, 0xFFFC, 0x1D159, 0x1680].contains(scalar.value)
    }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        if isEmojiStyle(scalar) { return true }
        if scalar.properties.isDefaultIgnorableCodePoint { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        default: return true
        }
    }
}
