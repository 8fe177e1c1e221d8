// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A JSON value (RFC 8259). It keeps the order of an object's members and the digits of a number, so that an
/// application's data stays unchanged.
package enum JSON: Sendable, Hashable {
    case null
    case boolean(Bool)
    /// A number, with its digits as written.
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    /// A member of an object: a name and its value.
    package struct Member: Sendable, Hashable {
        package let name: String
        package let value: JSON

        package init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// The value of the member with this name; nil if there is no such member, or if this value is not an object.
    package subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var boolean: Bool? {
        if case .boolean(let flag) = self { flag } else { nil }
    }

    /// The number, if it is an integer that fits into 64 bits; otherwise nil. `1.0` and `1e2` are integers.
    package var integer: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
    }

    package var array: [JSON]? {
        if case .array(let values) = self { values } else { nil }
    }

    /// The kind of value, for error messages.
    package var kind: String {
        switch self {
        case .null: "null"
        case .boolean: "true or false"
        case .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }

    package static func integer(_ number: some BinaryInteger) -> JSON { .number(String(number)) }

    /// Creates an object; members whose value is nil are left out.
    package static func members(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        .object(members.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }

    package init(booleanLiteral value: Bool) { self = .boolean(value) }

    package init(integerLiteral value: Int64) { self = .integer(value) }

    package init(arrayLiteral elements: JSON...) { self = .array(elements) }

    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member(name: $0.0, value: $0.1) })
    }
}
