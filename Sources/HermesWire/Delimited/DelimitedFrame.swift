// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// A frame of Delimited: the length as a base-128 varint of at most five bytes, and a body, one `hermes.v1.Packet`.
package struct DelimitedFrame: WireFrame {
    /// The longest frame that is accepted by default, in bytes.
    package static let defaultMaxBytes = 1_048_576

    /// The body as received; not empty.
    package var body: ByteBuffer
    /// Whether the body is the packet's JSON, from a text message of a WebSocket.
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
    ///   - maxParts: the largest number of parts (``MessageParts``); nil: any number, for packets of a server.
    ///   - counted: gets the number of its parts before it is parsed, even if there are too many.
    /// - Throws: WireError `.badBody` if it is not a packet or has too many parts, `.badText` if its JSON is not UTF-8.
    package func packet(
        maxParts: Int? = MessageParts.max,
        counted: (Int) -> Void = { _ in }
    ) throws(WireError) -> Hermes_V1_Packet {
        isJSON
            ? try Hermes_V1_Packet(wireJSON: body, maxParts: maxParts, counted: counted)
            : try Hermes_V1_Packet(wire: body, maxParts: maxParts, counted: counted)
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
    /// - Throws: WireError `.notEncodable` if the message cannot be serialised; then nothing was written.
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
    /// - Throws: WireError `.notEncodable` if the message has no JSON; then nothing was written.
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
