// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A JSON text as a value (RFC 8259). Keeps the order of an object's members and the digits of a number, so that the
/// application's own data passes as it came.
enum JSONValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    /// As it was written.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([Member])

    /// A name and its value.
    struct Member: Sendable, Hashable {
        let name: String
        let value: JSONValue
    }

    /// The member of an object; nil if it has none of this name, or is none.
    subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    var boolean: Bool? {
        if case .boolean(let flag) = self { flag } else { nil }
    }

    /// A number without a fraction that fits; `1.0` and `1e2` are such numbers, too.
    var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    }

    var array: [JSONValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// What kind of value it is, for messages.
    var kind: String {
        switch self {
        case .null: "null"
        case .boolean: "true or false"
        case .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }

    static func integer(_ number: some BinaryInteger) -> JSONValue { .number(String(number)) }

    /// An object; members whose value is nil are left out.
    static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .string(value) }

    init(booleanLiteral value: Bool) { self = .boolean(value) }

    init(integerLiteral value: Int64) { self = .integer(value) }

    init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { Member(name: $0.0, value: $0.1) })
    }
}
