// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The largest size of a value of a schema. It bounds a request before the request is parsed.
extension APISchema {
    /// The largest number of JSON values in a value of this schema. For ``any``, it is the parser's own limit.
    var maxValues: Int {
        switch self {
        case .string, .text, .choice, .integer, .boolean, .user: 1
        case .any, .anyObject: JSONParser.maxValues
        case .array(let element, let count): 1 + Self.product(count.upperBound, element.maxValues)
        case .object(let fields): fields.reduce(1) { $0 + $1.schema.maxValues }
        case .oneMember(let fields): 1 + (fields.map(\.schema.maxValues).max() ?? 0)
        case .named(_, let schema): schema.maxValues
        }
    }

    /// The largest size of a value's JSON text, in bytes, with room for spaces. Every character of a string may be
    /// written as two escapes.
    var maxBytes: Int {
        switch self {
        case .string(let length, _): 16 + Self.product(length.upperBound, 12)
        // A byte takes up to six bytes as an escape.
        case .text(let bytes, _): 16 + Self.product(bytes.upperBound, 6)
        case .choice(let values): 16 + 6 * (values.map(\.utf8.count).max() ?? 0)
        case .integer, .boolean: 64
        case .user: 16 + 6 * APIUserSelector.maxBytes
        case .any, .anyObject: API.maxBodyBytes
        case .array(let element, let count): 16 + Self.product(count.upperBound, element.maxBytes + 16)
        case .object(let fields): fields.reduce(1_024) { $0 + Self.member($1) }
        case .oneMember(let fields): 1_024 + (fields.map(Self.member).max() ?? 0)
        case .named(_, let schema): schema.maxBytes
        }
    }

    private static func member(_ field: Field) -> Int { 64 + field.name.utf8.count + field.schema.maxBytes }

    /// The largest result of ``product(_:_:)``. No schema needs more, because the length of a body limits a list that
    /// has no limit of its own.
    private static let most = 1 << 30

    private static func product(_ one: Int, _ other: Int) -> Int {
        let (product, isTooLarge) = one.multipliedReportingOverflow(by: other)
        return isTooLarge ? most : min(most, product)
    }
}
