// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// A frame of IMPB: a big-endian header of 8 bytes, and a body.
///
///     magic u8 = 0x81 | seq u32 | type u8 | length u16 | body
package struct IMPBFrame: WireFrame {
    /// The first byte of every frame.
    package static let magic: UInt8 = 0x81
    /// The length of the header in bytes.
    package static let headerBytes = 8
    /// The longest body that fits the header's length field, in bytes.
    package static let maxBodyBytes = Int(UInt16.max)

    /// In a request, a number that the client chooses. The reply repeats the number of the request. In other frames
    /// from the server, a number that the server chooses.
    package var seq: UInt32
    /// The type, which defines the body.
    package var type: IMPBFrameType
    /// The body as received.
    package var body: ByteBuffer

    /// Creates a frame.
    package init(seq: UInt32, type: IMPBFrameType, body: ByteBuffer = ByteBuffer()) {
        self.seq = seq
        self.type = type
        self.body = body
    }

    package var encodedBytes: Int { Self.headerBytes + body.readableBytes }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        try Self.writeHeader(seq: seq, type: type, bodyBytes: body.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(body)
    }

    /// Appends a frame whose body is a message.
    ///
    /// - Throws: WireError `.frameTooLong` if the message takes more than 65,535 bytes; `.notEncodable` if a required
    ///   field is missing. If the function throws, it writes nothing.
    package static func write(
        _ message: some SwiftProtobuf.Message,
        seq: UInt32,
        type: IMPBFrameType,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        let body = try message.wireBytes(as: [UInt8].self)
        try writeHeader(seq: seq, type: type, bodyBytes: body.count, into: &buffer)
        buffer.writeBytes(body)
    }

    /// Appends the header of a frame whose body the caller appends.
    ///
    /// - Throws: WireError `.frameTooLong` if the body takes more than 65,535 bytes. If the function throws, it writes
    ///   nothing.
    package static func writeHeader(
        seq: UInt32,
        type: IMPBFrameType,
        bodyBytes: Int,
        into buffer: inout ByteBuffer
    ) throws(WireError) {
        guard let length = UInt16(exactly: bodyBytes) else {
            throw .frameTooLong(bodyBytes, limit: maxBodyBytes)
        }
        buffer.reserveCapacity(minimumWritableBytes: headerBytes + bodyBytes)
        buffer.writeMultipleIntegers(magic, seq, type.rawValue, length)
    }
}

/// The type of an IMPB frame, which defines its body.
public struct IMPBFrameType: RawRepresentable, Hashable, Sendable {
    /// The number on the wire, which need not be defined.
    public let rawValue: UInt8

    /// Creates the type with this number.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A heartbeat; the server returns the same bytes.
    package static let ping = Self(rawValue: 1)
    /// A request (IMPB_Common) or its reply (IMPB_CommonRespon).
    package static let request = Self(rawValue: 2)
    /// A chat message (IMPB_base_msg).
    package static let message = Self(rawValue: 3)
    /// A notification (IMPB_Notification_msg).
    package static let notification = Self(rawValue: 4)

    /// Whether the type is defined.
    package var isKnown: Bool { (1...4).contains(rawValue) }
}
