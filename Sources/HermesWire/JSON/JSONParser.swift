// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Parses JSON strictly by RFC 8259: no comments, no trailing commas, no duplicate names in an object. Names are
/// compared byte by byte (RFC 8259, section 8.3).
///
/// The depth of a text is limited. Time and memory are linear in its length. Because other code compares names, the
/// parser refuses texts with many combining marks in a row (``StreamSafeText``).
package struct JSONParser {
    /// The reason why a text is refused, and where.
    package struct Failure: Error, Hashable {
        package let reason: String
        /// The offset in the text, in bytes.
        package let offset: Int
    }

    /// The deepest allowed nesting of values.
    package static let maxDepth = 32
    /// The largest number of values in a text from a client, like ``MessageParts/max`` for protobuf. A value may have
    /// only two bytes and takes up to a microsecond to parse. So the cost of a text depends on the number of its
    /// values, not on its bytes.
    package static let maxValues = 4_096
    /// The longest allowed number, in bytes.
    private static let maxNumberBytes = 64

    private let bytes: [UInt8]
    private var index = 0
    private var left: Int

    /// Parses a whole text.
    ///
    /// - Parameter maxValues: the largest allowed number of values in the text: strings, numbers, arrays, objects and
    ///   so on.
    package static func parse(_ bytes: [UInt8], maxValues: Int = Self.maxValues) throws(Failure) -> JSON {
        var parser = JSONParser(bytes: bytes, maxValues: maxValues)
        parser.skipSpace()
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.index == bytes.count else { throw parser.failure("there is further text after the value") }
        return value
    }

    private init(bytes: [UInt8], maxValues: Int) {
        self.bytes = bytes
        left = maxValues
    }

    private func failure(_ reason: String) -> Failure { Failure(reason: reason, offset: index) }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private mutating func takes(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func value(depth: Int) throws(Failure) -> JSON {
        guard depth < Self.maxDepth else { throw failure("values nest deeper than \(Self.maxDepth) levels") }
        guard left > 0 else { throw failure("there are too many values") }
        left -= 1
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .boolean(true))
        case UInt8(ascii: "f"): return try word("false", .boolean(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw failure("the text ends where a value is expected")
        default: return try number()
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(Failure) -> JSON {
        let count = word.utf8CodeUnitCount
        let isThere = word.withUTF8Buffer { bytes.dropFirst(index).prefix(count).elementsEqual($0) }
        guard isThere else { throw failure("a value is expected") }
        index += count
        return value
    }

    private mutating func object(depth: Int) throws(Failure) -> JSON {
        index += 1
        var members: [JSON.Member] = []
        var names: Set<ExactText> = []
        skipSpace()
        if takes(UInt8(ascii: "}")) { return .object([]) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw failure("a name in quotes is expected") }
            let name = try string()
            guard names.insert(ExactText(name)).inserted else {
                throw failure("the name \"\(name.prefix(64))\" is a duplicate")
            }
            skipSpace()
            guard takes(UInt8(ascii: ":")) else { throw failure("a colon is expected") }
            skipSpace()
            members.append(JSON.Member(name: name, value: try value(depth: depth + 1)))
            skipSpace()
            if takes(UInt8(ascii: "}")) { return .object(members) }
            guard takes(UInt8(ascii: ",")) else { throw failure("a comma or the object's end is expected") }
        }
    }

    private mutating func array(depth: Int) throws(Failure) -> JSON {
        index += 1
        var values: [JSON] = []
        skipSpace()
        if takes(UInt8(ascii: "]")) { return .array([]) }
        while true {
            skipSpace()
            values.append(try value(depth: depth + 1))
            skipSpace()
            if takes(UInt8(ascii: "]")) { return .array(values) }
            guard takes(UInt8(ascii: ",")) else { throw failure("a comma or the list's end is expected") }
        }
    }

    // MARK: Numbers

    private mutating func number() throws(Failure) -> JSON {
        let start = index
        _ = takes(UInt8(ascii: "-"))
        guard let first = next, isDigit(first) else { throw failure("a value is expected") }
        index += 1
        if first != UInt8(ascii: "0") { skipDigits() }
        if takes(UInt8(ascii: ".")) { try digits() }
        if takes(UInt8(ascii: "e")) || takes(UInt8(ascii: "E")) {
            if !takes(UInt8(ascii: "+")) { _ = takes(UInt8(ascii: "-")) }
            try digits()
        }
        guard index - start <= Self.maxNumberBytes else { throw failure("the number is too long") }
        return .number(String(decoding: bytes[start..<index], as: UTF8.self))
    }

    private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private mutating func skipDigits() { while let byte = next, isDigit(byte) { index += 1 } }

    private mutating func digits() throws(Failure) {
        guard let byte = next, isDigit(byte) else { throw failure("a digit is expected") }
        skipDigits()
    }

    // MARK: Texts

    private mutating func string() throws(Failure) -> String {
        index += 1
        var utf8: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: utf8, as: UTF8.self) else { throw failure("the text is not UTF-8") }
                guard StreamSafeText.isSafe(utf8) else { throw failure("the text \(StreamSafeText.problem)") }
                return text
            case UInt8(ascii: "\\"):
                utf8.append(contentsOf: String(try escape()).utf8)
            case 0..<0x20:
                throw failure("a control character in a text must be written as an escape")
            default:
                utf8.append(byte)
            }
        }
        throw failure("the text has no end")
    }

    private mutating func escape() throws(Failure) -> Unicode.Scalar {
        guard let byte = next else { throw failure("the text has no end") }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw failure("there is no such escape")
        }
    }

    private mutating func unicodeEscape() throws(Failure) -> Unicode.Scalar {
        let unit = try hexadecimal()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        // The unit must be the first half of a surrogate pair. A half alone is not a character.
        guard (0xD800..<0xDC00).contains(unit), takes(UInt8(ascii: "\\")), takes(UInt8(ascii: "u")) else {
            throw failure("a surrogate pair is incomplete")
        }
        let low = try hexadecimal()
        guard (0xDC00..<0xE000).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
        else { throw failure("a surrogate pair is incomplete") }
        return scalar
    }

    private mutating func hexadecimal() throws(Failure) -> UInt32 {
        guard bytes.count - index >= 4 else { throw failure("four hexadecimal digits are expected") }
        var value: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
            default: throw failure("four hexadecimal digits are expected")
            }
        }
        index += 4
        return value
    }
}
