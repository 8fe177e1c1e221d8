// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// Parses and serialises protobuf in ByteBuffers, without a copy into Foundation's Data.
extension SwiftProtobuf.Message {
    /// Parses a message from all readable bytes of a buffer.
    ///
    /// - Parameters:
    ///   - maxParts: the largest allowed number of parts (``MessageParts``). Nil allows any number, for messages from
    ///     the server.
    ///   - counted: is called with the number of the message's parts before the message is parsed, even if there are
    ///     too many. It is not called if `maxParts` is nil.
    /// - Throws: WireError `.badBody` or `.badText`, like the initializer below.
    package init(
        wire buffer: ByteBuffer,
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) {
        try self.init(wire: BufferBytes(buffer), maxParts: maxParts, counted: counted)
    }

    /// Parses a message from bytes, for example from a field that holds another message.
    ///
    /// - Parameters:
    ///   - maxParts: the largest allowed number of parts. Nil allows any number, for messages from the server.
    ///   - counted: is called with the number of the message's parts before the message is parsed, even if there are
    ///     too many. It is not called if `maxParts` is nil.
    /// - Throws: WireError `.badBody` if the bytes are not a message of this type, nest messages deeper than 32
    ///   levels, lack a required field, or have too many parts; `.badText` if `maxParts` is not nil and the bytes hold
    ///   too many combining marks in a row (``StreamSafeText``). The marks are checked before decoding, because the
    ///   decoder itself compares the keys of a map.
    package init(
        wire bytes: some SwiftProtobufContiguousBytes,
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) {
        if let maxParts {
            let parts = MessageParts.count(Self.self, wire: bytes)
            counted(parts)
            guard parts <= maxParts else { throw .tooManyParts(Self.protoMessageName) }
            guard bytes.withUnsafeBytes({ StreamSafeText.isSafe($0) }) else { throw .unsafeText(Self.protoMessageName) }
        }
        do {
            try self.init(serializedBytes: bytes, options: .wire)
        } catch {
            throw WireError(.badBody, "the body is not a \(Self.protoMessageName): \(error)")
        }
    }

    /// Serialises the message, for example into a field that holds another message.
    ///
    /// - Throws: WireError `.notEncodable` if a required field is missing.
    package func wireBytes<Bytes: SwiftProtobufContiguousBytes>(
        as type: Bytes.Type = Bytes.self
    ) throws(WireError) -> Bytes {
        do {
            return try serializedBytes()
        } catch {
            throw WireError(.notEncodable, "a \(Self.protoMessageName) cannot be written: \(error)")
        }
    }

    /// Serialises the message into a new buffer.
    ///
    /// - Throws: WireError `.notEncodable` if a required field is missing.
    package func wireBuffer() throws(WireError) -> ByteBuffer {
        try wireBytes(as: BufferBytes.self).buffer
    }
}

extension WireError {
    /// Creates the error for a message with more parts than ``MessageParts/max``.
    static func tooManyParts(_ name: String) -> WireError {
        WireError(.badBody, "the \(name) has more than \(MessageParts.max) fields and elements")
    }

    /// Creates the error for a message with more than ``StreamSafeText/maxRun`` combining marks in a row.
    static func unsafeText(_ name: String) -> WireError {
        WireError(.badText, "a text in the \(name) \(StreamSafeText.problem)")
    }
}

extension BinaryDecodingOptions {
    /// The options for bytes from the network: messages may be nested at most 32 levels deep (the schemas need 6).
    static let wire: BinaryDecodingOptions = {
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = 32
        return options
    }()
}

/// The readable bytes of a ByteBuffer, as the type of bytes that SwiftProtobuf reads and writes.
struct BufferBytes: SwiftProtobufContiguousBytes {
    var buffer: ByteBuffer

    init(_ buffer: ByteBuffer) { self.buffer = buffer }
    init(repeating byte: UInt8, count: Int) { buffer = ByteBuffer(repeating: byte, count: count) }
    init<Bytes: Sequence>(_ sequence: Bytes) where Bytes.Element == UInt8 { buffer = ByteBuffer(bytes: sequence) }

    var count: Int { buffer.readableBytes }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try buffer.withUnsafeReadableBytes(body)
    }

    mutating func withUnsafeMutableBytes<Result>(
        _ body: (UnsafeMutableRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try buffer.withUnsafeMutableReadableBytes(body)
    }
}
