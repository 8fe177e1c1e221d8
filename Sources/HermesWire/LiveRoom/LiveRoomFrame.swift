// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// A frame of LiveRoom: a little-endian header of 6 bytes, and a body.
///
///     length u32 (of the body alone) | type u16 | body
///
/// The frame keeps the received bytes, header included, because a room forwards them byte for byte.
package struct LiveRoomFrame: WireFrame {
    /// The length of the header in bytes.
    package static let headerBytes = 6

    /// The type, which defines the body.
    package let type: LiveRoomFrameType
    /// The whole frame, header and body.
    package let bytes: ByteBuffer

    /// Wraps the bytes of a whole frame.
    init(type: LiveRoomFrameType, bytes: ByteBuffer) {
        self.type = type
        self.bytes = bytes
    }

    /// Creates a frame around a body.
    ///
    /// - Throws: WireError `.frameTooLong` if the body takes 4 GiB or more.
    package init(type: LiveRoomFrameType, body: ByteBuffer) throws(WireError) {
        var bytes = ByteBuffer()
        try Self.writeHeader(type: type, bodyBytes: body.readableBytes, into: &bytes)
        bytes.writeImmutableBuffer(body)
        self.init(type: type, bytes: bytes)
    }

    /// Creates a frame whose body is a message.
    ///
    /// - Throws: WireError `.notEncodable` if a required field is missing.
    package init(type: LiveRoomFrameType, message: some SwiftProtobuf.Message) throws(WireError) {
        var bytes = ByteBuffer()
        try Self.write(message, type: type, into: &bytes)
        self.init(type: type, bytes: bytes)
    }

    /// The body: a slice of `bytes`.
    package var body: ByteBuffer {
        var body = bytes
        body.moveReaderIndex(forwardBy: min(Self.headerBytes, body.readableBytes))
        return body.slice()
    }

    package var encodedBytes: Int { bytes.readableBytes }

    package func write(into buffer: inout ByteBuffer) {
        buffer.writeImmutableBuffer(bytes)
    }

    /// Appends a frame whose body is a message.
    ///
    /// - Throws: WireError `.notEncodable` if a required field is missing. If the function throws, it writes nothing.
    package static func write(
        _ message: some SwiftProtobuf.Message,
        type: LiveRoomFrameType,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        let body = try message.wireBytes(as: [UInt8].self)
        try writeHeader(type: type, bodyBytes: body.count, into: &buffer)
        buffer.writeBytes(body)
    }

    /// Appends the header of a frame whose body the caller appends.
    ///
    /// - Throws: WireError `.frameTooLong` if the body takes 4 GiB or more. If the function throws, it writes nothing.
    package static func writeHeader(
        type: LiveRoomFrameType,
        bodyBytes: Int,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        guard let length = UInt32(exactly: bodyBytes) else {
            throw .frameTooLong(bodyBytes, limit: Int(clamping: UInt32.max))
        }
        buffer.reserveCapacity(minimumWritableBytes: headerBytes + bodyBytes)
        buffer.writeMultipleIntegers(length, type.rawValue, endianness: .little)
    }
}
