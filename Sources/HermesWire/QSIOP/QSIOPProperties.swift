// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The properties of a QSIOP frame: keys and values in their order.
///
/// Keys are compared byte by byte. A key may repeat; its last value counts.
package struct QSIOPProperties: Hashable, Sendable {
    /// A key and its value: one line of the frame's body.
    package struct Pair: Hashable, Sendable {
        /// The key, without LF and colon.
        package let key: String
        /// The value, without LF.
        package let value: String
    }

    /// The lines in their order, repeated keys included.
    package private(set) var pairs: [Pair] = []

    /// Creates empty properties.
    package init() {}

    /// The value of a key; nil if the key is missing.
    ///
    /// Setting a value replaces all lines of the key; setting nil removes them.
    package subscript(key: String) -> String? {
        get { pairs.last { $0.key.utf8.elementsEqual(key.utf8) }?.value }
        set {
            pairs.removeAll { $0.key.utf8.elementsEqual(key.utf8) }
            if let newValue { append(key, newValue) }
        }
    }

    /// Adds a line.
    ///
    /// Characters that would break the format are replaced: LF, CR, NUL and colon in the key by "_" each, and LF, CR
    /// and NUL in the value by a space each. CR and NUL are replaced because some devices end a line at CR, or a string
    /// at NUL.
    package mutating func append(_ key: String, _ value: String) {
        pairs.append(
            Pair(
                key: key.replacing(Self.ends + [Self.colon], with: "_"),
                value: value.replacing(Self.ends, with: " ")
            )
        )
    }

    /// Adds a line without any change to the key and the value.
    ///
    /// - Throws: WireError `.notEncodable` if `append` would replace a character of the key or of the value.
    package mutating func appendUnchanged(_ key: String, _ value: String) throws(WireError) {
        guard !key.utf8.contains(where: { Self.ends.contains($0) || $0 == Self.colon }) else {
            throw WireError(.notEncodable, "the name of a property must not contain a colon, LF, CR or U+0000")
        }
        guard !value.utf8.contains(where: Self.ends.contains) else {
            throw WireError(.notEncodable, "the value of a property must not contain LF, CR or U+0000")
        }
        pairs.append(Pair(key: key, value: value))
    }

    private static let ends: [UInt8] = [lf, UInt8(ascii: "\r"), 0]
    static let lf = UInt8(ascii: "\n")
    static let colon = UInt8(ascii: ":")
}

extension QSIOPProperties: ExpressibleByDictionaryLiteral {
    /// Creates properties; characters that would break the format are replaced as in `append`.
    package init(dictionaryLiteral elements: (String, String)...) {
        for (key, value) in elements { append(key, value) }
    }
}

extension QSIOPProperties {
    /// Parses lines of `key:value`. A line is split at its first colon. A line without a colon has an empty value.
    /// Empty lines are ignored.
    ///
    /// - Parameter isFromServer: whether a server sent the text. If so, the combining marks are not checked.
    /// - Throws: WireError `.badText` if the text is not UTF-8, or holds too many combining marks in a row
    ///   (``StreamSafeText``).
    package init(parsing buffer: ByteBuffer, isFromServer: Bool = false) throws(WireError) {
        guard isFromServer || StreamSafeText.isSafe(buffer) else {
            throw WireError(.badText, "a text in the properties \(StreamSafeText.problem)")
        }
        // LF and colon are ASCII. So the whole text is valid UTF-8 if and only if each part is valid UTF-8.
        for line in buffer.readableBytesView.split(separator: Self.lf) {
            let colon = line.firstIndex(of: Self.colon)
            let value = colon.map { line[line.index(after: $0)...] }
            guard
                let key = String(validating: line[..<(colon ?? line.endIndex)], as: UTF8.self),
                let value = value.map({ String(validating: $0, as: UTF8.self) }) ?? ""
            else {
                throw WireError(.badText, "the properties are not UTF-8")
            }
            pairs.append(Pair(key: key, value: value))
        }
    }

    /// Appends the lines, each with its LF.
    package func write(into buffer: inout ByteBuffer) {
        for pair in pairs {
            buffer.writeString(pair.key)
            buffer.writeInteger(Self.colon)
            buffer.writeString(pair.value)
            buffer.writeInteger(Self.lf)
        }
    }
}

extension String {
    /// Returns the string with certain ASCII characters replaced.
    fileprivate func replacing(_ bytes: [UInt8], with replacement: String) -> String {
        guard utf8.contains(where: bytes.contains) else { return self }
        // Compares scalars, because "\r\n" is a single Character.
        var result = ""
        for scalar in unicodeScalars {
            if let byte = UInt8(exactly: scalar.value), bytes.contains(byte) {
                result += replacement
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
