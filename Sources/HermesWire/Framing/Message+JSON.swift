// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// Parses protobuf's JSON from the network. No other code parses such JSON; `make lint` checks this rule.
extension SwiftProtobuf.Message {
    /// Parses a message from its JSON (``init(wireJSON:maxParts:counted:)``) or from its binary form
    /// (``init(wire:maxParts:counted:)``).
    package init(
        _ body: ByteBuffer,
        isJSON: Bool,
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) {
        if isJSON {
            try self.init(wireJSON: body, maxParts: maxParts, counted: counted)
        } else {
            try self.init(wire: body, maxParts: maxParts, counted: counted)
        }
    }

    /// Parses a message from its JSON, which is all readable bytes of a buffer.
    ///
    /// Fields and enum names that the server does not know are ignored, so that a newer client can talk to an older
    /// server.
    ///
    /// SwiftProtobuf's JSON decoder accepts enum numbers of 64 bits. SwiftProtobuf's binary encoder reserves 32 bits
    /// for an enum but writes 64 bits, past the end of its buffer. So a number that does not fit into 32 bits must not
    /// get into a message.
    ///
    /// - Parameters:
    ///   - maxParts: the largest allowed number of parts. Nil allows any number.
    ///   - counted: is called with the number of the message's parts before anything else is checked. It is not called
    ///     if `maxParts` is nil.
    /// - Throws: WireError `.badText` if the bytes are not UTF-8, or hold too many combining marks in a row
    ///   (``StreamSafeText``); `.badBody` if they are not the JSON of a message of this type, nest more than 32
    ///   objects, hold an enum number that does not fit into 32 bits, or have too many parts (``MessageParts``).
    package init(
        wireJSON buffer: ByteBuffer,
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) {
        let parts = maxParts == nil ? 0 : MessageParts.count(json: buffer)
        if maxParts != nil { counted(parts) }
        guard String(validating: buffer.readableBytesView, as: UTF8.self) != nil else {
            throw WireError(.badText, "the JSON of a \(Self.protoMessageName) is not UTF-8")
        }
        if let maxParts, parts > maxParts { throw .tooManyParts(Self.protoMessageName) }
        guard StreamSafeText.isSafe(json: buffer) else { throw .unsafeText(Self.protoMessageName) }
        var options = JSONDecodingOptions()
        options.messageDepthLimit = BinaryDecodingOptions.wire.messageDepthLimit
        options.ignoreUnknownFields = true
        do {
            try self.init(jsonUTF8Bytes: BufferBytes(buffer), options: options)
        } catch {
            let reason = Self.reason(of: error as? JSONDecodingError)
            throw WireError(.badBody, "the body is not the JSON of a \(Self.protoMessageName): \(reason)")
        }
        guard hasEncodableEnums else {
            throw WireError(
                .badBody,
                "an enum number in the JSON of a \(Self.protoMessageName) is outside -2^31 … 2^31-1"
            )
        }
    }

    /// Returns a readable reason why JSON was not accepted. SwiftProtobuf does not report the field or byte at which
    /// it stopped.
    ///
    /// - Parameter error: the JSON decoder's error; nil for an error of another type.
    private static func reason(of error: JSONDecodingError?) -> String {
        switch error {
        // SwiftProtobuf also throws this error for a base64 text without any valid character.
        case .failure: "a value has the wrong type, punctuation is missing or misplaced, or bytes are not in base64"
        case .malformedNumber, .numberRange: "a number is malformed, out of range, or not an integer"
        case .leadingZero: "a number begins with a zero that does not belong there"
        // The bytes were already checked to be UTF-8. Here the error means a number with more digits than
        // SwiftProtobuf reads.
        case .invalidUTF8: "a number has too many digits"
        case .malformedString: "a text, or the base64 of bytes, is malformed or not in quotes"
        case .malformedBool: "a value is neither true nor false"
        case .malformedMap: "a map has a null value, or two keys that are equal or differ only in Unicode normalization"
        case .unquotedMapKey: "a key of a map is not in quotes"
        case .illegalNull: "null stands where a value is required"
        case .conflictingOneOf: "it has two fields of which only one may be set"
        case .truncated: "it is incomplete, or contains a bare word other than true, false and null"
        case .trailingGarbage: "something follows its end"
        case .messageDepthLimit: "objects are nested more than \(BinaryDecodingOptions.wire.messageDepthLimit) deep"
        // The other errors do not occur: the schemas have no times and no field masks, all fields have names, and
        // unknown names are ignored.
        default: "it does not fit the schema"
        }
    }

    /// Whether every enum value in the message, at any depth, fits into 32 bits as protobuf requires. Only then can the
    /// message be encoded.
    package var hasEncodableEnums: Bool {
        var visitor = EnumRangeVisitor()
        do {
            try traverse(visitor: &visitor)
            return true
        } catch {
            return false
        }
    }
}

/// Walks a message and stops at the first enum number that does not fit into 32 bits.
private struct EnumRangeVisitor: Visitor {
    struct OutOfRange: Error {}

    private func check(_ value: some SwiftProtobuf.Enum) throws {
        guard Int32(exactly: value.rawValue) != nil else { throw OutOfRange() }
    }

    mutating func visitSingularEnumField<E: SwiftProtobuf.Enum>(value: E, fieldNumber: Int) throws { try check(value) }

    mutating func visitRepeatedEnumField<E: SwiftProtobuf.Enum>(value: [E], fieldNumber: Int) throws {
        for element in value { try check(element) }
    }

    mutating func visitPackedEnumField<E: SwiftProtobuf.Enum>(value: [E], fieldNumber: Int) throws {
        for element in value { try check(element) }
    }

    mutating func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufEnumMap<KeyType, ValueType>.Type,
        value: _ProtobufEnumMap<KeyType, ValueType>.BaseType,
        fieldNumber: Int
    ) throws where ValueType.RawValue == Int {
        for element in value.values { try check(element) }
    }

    mutating func visitSingularMessageField<M: SwiftProtobuf.Message>(value: M, fieldNumber: Int) throws {
        try value.traverse(visitor: &self)
    }

    mutating func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufMessageMap<KeyType, ValueType>.Type,
        value: _ProtobufMessageMap<KeyType, ValueType>.BaseType,
        fieldNumber: Int
    ) throws {
        for element in value.values { try element.traverse(visitor: &self) }
    }

    // The fields below cannot contain an enum. The methods for bytes are generic, so that this file need not import
    // Foundation for its Data.
    mutating func visitSingularDoubleField(value: Double, fieldNumber: Int) {}
    mutating func visitSingularInt64Field(value: Int64, fieldNumber: Int) {}
    mutating func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) {}
    mutating func visitSingularBoolField(value: Bool, fieldNumber: Int) {}
    mutating func visitSingularStringField(value: String, fieldNumber: Int) {}
    mutating func visitSingularBytesField<Bytes>(value: Bytes, fieldNumber: Int) {}
    mutating func visitUnknown<Bytes>(bytes: Bytes) {}
    mutating func visitMapField<KeyType, ValueType: MapValueType>(
        fieldType: _ProtobufMap<KeyType, ValueType>.Type,
        value: _ProtobufMap<KeyType, ValueType>.BaseType,
        fieldNumber: Int
    ) {}
}
