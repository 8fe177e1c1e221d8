// Hermes
// SPDX-License-Identifier: Apache-2.0

/// One setting with the type of its value.
package struct Setting<Value: Sendable>: Sendable {
    /// The description without the value's type.
    package let descriptor: SettingDescriptor
    let parse: @Sendable (String) -> Value?

    /// Creates a setting whose values have a form of their own.
    ///
    /// - Parameters:
    ///   - kind: the kind of value, for people: "whole number", "duration".
    ///   - allowed: the allowed values, for people: "1 to 65,535".
    ///   - parse: returns the value of a text; nil if the text is not allowed.
    package init(
        _ key: String,
        kind: String,
        allowed: String,
        default defaultText: String,
        _ summary: String,
        isSecret: Bool = false,
        parse: @escaping @Sendable (String) -> Value?
    ) {
        self.parse = parse
        descriptor = SettingDescriptor(
            key: key,
            kind: kind,
            allowed: allowed,
            defaultText: defaultText,
            summary: summary,
            isSecret: isSecret,
            accepts: { parse($0) != nil }
        )
    }
}

extension Setting where Value == Bool {
    /// Creates a setting that is true or false.
    package static func flag(_ key: String, default value: Bool, _ summary: String) -> Self {
        Setting(key, kind: "switch", allowed: "true or false", default: String(value), summary) { text in
            switch text {
            case "true": true
            case "false": false
            default: nil
            }
        }
    }
}

extension Setting where Value == Int {
    /// Creates a setting for a whole number within a range.
    package static func number(
        _ key: String,
        default value: Int,
        in range: ClosedRange<Int>,
        _ summary: String
    ) -> Self {
        let allowed = "\(SettingUnits.grouped(range.lowerBound)) to \(SettingUnits.grouped(range.upperBound))"
        return Setting(key, kind: "whole number", allowed: allowed, default: String(value), summary) { text in
            guard let number = Int(text.replacing("_", with: "")), range.contains(number) else { return nil }
            return number
        }
    }

    /// Creates a setting for a number of bytes with a unit, such as `1 MiB`.
    package static func byteCount(
        _ key: String,
        default value: Int,
        in range: ClosedRange<Int>,
        _ summary: String
    ) -> Self {
        let low = SettingUnits.format(bytes: range.lowerBound)
        let high = SettingUnits.format(bytes: range.upperBound)
        return Setting(
            key,
            kind: "size",
            allowed: "\(low) to \(high), with a unit: B, KiB, MiB or GiB",
            default: SettingUnits.format(bytes: value),
            summary
        ) { text in
            guard let bytes = SettingUnits.parse(bytes: text), range.contains(bytes) else { return nil }
            return bytes
        }
    }
}

extension Setting where Value == Duration {
    /// Creates a setting for a duration with a unit, such as `10 s`.
    package static func duration(
        _ key: String,
        default value: Duration,
        in range: ClosedRange<Duration>,
        _ summary: String
    ) -> Self {
        let low = SettingUnits.format(range.lowerBound)
        let high = SettingUnits.format(range.upperBound)
        return Setting(
            key,
            kind: "duration",
            allowed: "\(low) to \(high), with a unit: ms, s, min, h or d",
            default: SettingUnits.format(value),
            summary
        ) { text in
            guard let duration = SettingUnits.parse(duration: text), range.contains(duration) else { return nil }
            return duration
        }
    }
}

extension Setting where Value == String {
    /// Creates a setting whose value is one of `words`.
    package static func choice(_ key: String, of words: [String], default value: String, _ summary: String) -> Self {
        Setting(key, kind: "choice", allowed: words.joined(separator: ", "), default: value, summary) { text in
            words.contains(text) ? text : nil
        }
    }

    /// Creates a setting for a text of limited length without control characters.
    package static func text(
        _ key: String,
        default value: String,
        maxBytes: Int,
        isEmptyAllowed: Bool = false,
        kind: String = "text",
        _ summary: String
    ) -> Self {
        let low = isEmptyAllowed ? 0 : 1
        return Setting(key, kind: kind, allowed: "\(low) to \(maxBytes) bytes", default: value, summary) { text in
            guard
                (low...maxBytes).contains(text.utf8.count),
                text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else { return nil }
            return text
        }
    }

    /// The kind of settings that are paths.
    static var pathKind: String { "path" }

    /// Whether a path begins with the short form of a home directory.
    static func isForShell(_ path: String) -> Bool { path == "~" || path.hasPrefix("~/") }

    /// Creates a setting for the path of a file or folder. A relative path begins at the working directory.
    package static func path(
        _ key: String,
        default value: String,
        isEmptyAllowed: Bool = false,
        _ summary: String
    ) -> Self {
        let plain = text(key, default: value, maxBytes: 4096, isEmptyAllowed: isEmptyAllowed, kind: pathKind, summary)
        return Setting(
            key,
            kind: plain.descriptor.kind,
            allowed: plain.descriptor.allowed,
            default: value,
            summary
        ) { path in
            isForShell(path) ? nil : plain.parse(path)
        }
    }
}

extension Setting where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// Creates a setting for one case of an enumeration.
    package static func choice(_ key: String, default value: Value, _ summary: String) -> Self {
        let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
        return Setting(key, kind: "choice", allowed: allowed, default: value.rawValue, summary) { text in
            Value(rawValue: text)
        }
    }
}

extension Setting {
    /// Creates a setting for one or more cases of an enumeration, separated by commas.
    package static func choices<Choice>(_ key: String, default values: [Choice], _ summary: String) -> Self
    where Value == [Choice], Choice: CaseIterable & RawRepresentable, Choice.RawValue == String {
        let words = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        let text = values.map(\.rawValue).joined(separator: ", ")
        return Setting(key, kind: "list", allowed: "some of \(words)", default: text, summary) { text in
            let words = Self.words(text)
            let values = words.compactMap { Choice(rawValue: $0) }
            return values.isEmpty || values.count < words.count ? nil : values
        }
    }

    private static func words(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { word in
            String(word.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }
}

extension Setting where Value == [String] {
    /// Creates a setting for a list of texts, separated by commas. An empty text is an empty list.
    package static func texts(_ key: String, maxCount: Int, maxBytes: Int, _ summary: String) -> Self {
        let allowed = "up to \(maxCount) texts of at most \(maxBytes) bytes each, separated by commas"
        return Setting(key, kind: "list", allowed: allowed, default: "", summary) { text in
            if text.isEmpty { return [] }
            let words = words(text)
            let areAllowed = words.allSatisfy { word in
                (1...maxBytes).contains(word.utf8.count)
                    && word.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
            }
            return areAllowed && words.count <= maxCount ? words : nil
        }
    }

    /// Creates a setting for the origins of web pages, in the form of a Content-Security-Policy. The check ensures that
    /// no origin can end or extend the directive in which it appears.
    package static func origins(_ key: String, maxCount: Int, _ summary: String) -> Self {
        let allowed = "up to \(maxCount) origins such as https://example.org, separated by commas"
        return Setting(key, kind: "list", allowed: allowed, default: "", summary) { text in
            if text.isEmpty { return [] }
            let words = words(text)
            return words.count <= maxCount && words.allSatisfy(isOrigin) ? words : nil
        }
    }

    /// Whether a text is `http(s)://HOST` with an optional port; the host may begin with `*.`.
    private static func isOrigin(_ text: String) -> Bool {
        guard text.utf8.count <= 255,
            let scheme = ["https://", "http://"].first(where: text.hasPrefix)
        else { return false }
        let parts = text.dropFirst(scheme.count).split(separator: ":", omittingEmptySubsequences: false)
        guard let host = parts.first, parts.count <= 2 else { return false }
        if parts.count == 2, !parts[1].allSatisfy(\.isNumber) || UInt16(parts[1]) == nil { return false }
        let labels = (host.hasPrefix("*.") ? host.dropFirst(2) : host)
            .split(separator: ".", omittingEmptySubsequences: false)
        return labels.allSatisfy { label in
            !label.isEmpty && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        }
    }
}
