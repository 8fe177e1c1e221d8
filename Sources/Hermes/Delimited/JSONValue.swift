// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A JSON value of any shape.
public enum JSONValue: Hashable, Sendable, Codable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction that fits into 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// Values by name.
    case object([String: JSONValue])

    /// Reads a value from JSON text.
    ///
    /// - Throws: DecodingError if the text is no JSON.
    public init(json: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(json.utf8))
    }

    /// Decodes a value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }

    /// The value under a name; nil if this is no object or has no such name.
    public subscript(name: String) -> JSONValue? { if case .object(let values) = self { values[name] } else { nil } }

    /// The element at an index; nil if this is no array or is too short.
    public subscript(index: Int) -> JSONValue? {
        if case .array(let values) = self, values.indices.contains(index) { values[index] } else { nil }
    }

    /// The string; nil for other values.
    public var text: String? { if case .string(let value) = self { value } else { nil } }
    /// The integer; nil for other values.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// The number; nil for other values.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .null, .bool, .string, .array, .object: nil
        }
    }
    /// The truth value; nil for other values.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
}

extension Push {
    /// The application's own data; nil if there is none or it is not JSON.
    public var data: JSONValue? { dataJSON.isEmpty ? nil : try? JSONValue(json: dataJSON) }

    /// Decodes the application's own data into a type.
    ///
    /// - Throws: DecodingError if the data does not fit the type.
    public func data<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(dataJSON.utf8))
    }
}
