// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// A frame of Delimited: the body's length as a base-128 varint of at most five bytes, followed by the body. The body
/// is one `hermes.v1.Packet`.
package struct DelimitedFrame: WireFrame {
    /// The longest body that is accepted by default, in bytes.
    package static let defaultMaxBytes = 1_048_576

    /// The body as received; not empty.
    package var body: ByteBuffer
    /// Whether the body is the packet's JSON. Such a frame comes from a text message of a WebSocket.
    package var isJSON: Bool

    /// Creates a frame.
    package init(body: ByteBuffer, isJSON: Bool = false) {
        self.body = body
        self.isJSON = isJSON
    }

    /// Creates a frame around a packet.
    ///
    /// - Throws: WireError `.notEncodable` if the packet cannot be serialised.
    package init(_ packet: Hermes_V1_Packet) throws(WireError) {
        self.init(body: try packet.wireBuffer())
    }

    /// Parses the body.
    ///
    /// - Parameters:
    ///   - maxParts: the largest allowed number of parts (``MessageParts``). Nil allows any number, for packets from a
    ///     server.
    ///   - counted: is called with the number of the packet's parts before the packet is parsed, even if there are too
    ///     many. It is not called if `maxParts` is nil.
    /// - Throws: WireError `.badBody` if the body is not a packet or has too many parts; `.badText` if the JSON is not
    ///   UTF-8, or the body holds too many combining marks in a row.
    package func packet(
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) -> Hermes_V1_Packet {
        try Hermes_V1_Packet(body, isJSON: isJSON, maxParts: maxParts, counted: counted)
    }

    package var encodedBytes: Int {
        let length = UInt32(clamping: body.readableBytes)
        return (isJSON ? DelimitedPrefix.maxBytes : DelimitedPrefix.encodedBytes(length)) + body.readableBytes
    }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        if isJSON {
            try Self.writeTextPrefix(body.readableBytes, into: &buffer)
        } else {
            try DelimitedPrefix.write(body.readableBytes, into: &buffer)
        }
        buffer.writeImmutableBuffer(body)
    }

    private static func writeTextPrefix(_ bytes: Int, into buffer: inout ByteBuffer) throws(WireError) {
        guard let length = UInt32(exactly: bytes) else {
            throw .frameTooLong(bytes, limit: Int(clamping: UInt32.max))
        }
        DelimitedPrefix.writeText(length, isLast: true, into: &buffer)
    }

    /// Appends a frame whose body is a message.
    ///
    /// - Throws: WireError `.notEncodable` if the message cannot be serialised. If the function throws, it writes
    ///   nothing.
    package static func write(
        _ message: some SwiftProtobuf.Message,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        let body = try message.wireBytes(as: [UInt8].self)
        try DelimitedPrefix.write(body.count, into: &buffer)
        buffer.writeBytes(body)
    }

    /// Appends a frame whose body is the JSON of a message, for ``WebSocketMessage/init(delimited:)``.
    ///
    /// - Throws: WireError `.notEncodable` if the message has no JSON. If the function throws, it writes nothing.
    package static func write(
        json message: some SwiftProtobuf.Message,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        let body: [UInt8]
        do {
            body = try message.jsonUTF8Bytes()
        } catch {
            throw WireError(.notEncodable, "a \(type(of: message).protoMessageName) has no JSON: \(error)")
        }
        try writeTextPrefix(body.count, into: &buffer)
        buffer.writeBytes(body)
    }
}
