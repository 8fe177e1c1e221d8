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

    /// Creates a frame.
    package init(body: ByteBuffer) {
        self.body = body
    }

    /// Creates a frame around a packet.
    ///
    /// - Throws: WireError `.notEncodable` if the packet cannot be serialised.
    package init(_ packet: Hermes_V1_Packet) throws(WireError) {
        self.init(body: try packet.wireBuffer())
    }

    /// Parses the body.
    ///
    /// - Throws: WireError `.badBody` if it is not a packet.
    package func packet() throws(WireError) -> Hermes_V1_Packet {
        try Hermes_V1_Packet(wire: body)
    }

    package var encodedBytes: Int {
        DelimitedPrefix.encodedBytes(UInt32(clamping: body.readableBytes)) + body.readableBytes
    }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        try DelimitedPrefix.write(body.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(body)
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
}
