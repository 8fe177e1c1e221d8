// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A frame of QSIOP: a big-endian header of 6 bytes, and the properties as text.
///
///     ver u16 = 1 | op u16 | propl u16 | key:value LF key:value LF …
package struct QSIOPFrame: WireFrame {
    /// The version of the protocol.
    package static let version: UInt16 = 1
    /// The length of the header in bytes.
    package static let headerBytes = 6
    /// The largest size of the properties that fits the header's length field, in bytes.
    package static let maxBodyBytes = Int(UInt16.max)

    /// The operation of the frame.
    package var operation: QSIOPOperation
    /// The properties as text, as received.
    package var body: ByteBuffer

    /// Creates a frame from properties as text.
    package init(_ operation: QSIOPOperation, body: ByteBuffer = ByteBuffer()) {
        self.operation = operation
        self.body = body
    }

    /// Creates a frame.
    package init(_ operation: QSIOPOperation, _ properties: QSIOPProperties) {
        var body = ByteBuffer()
        properties.write(into: &body)
        self.init(operation, body: body)
    }

    /// The largest number of lines in a frame from a device.
    package static let maxLines = 1_024

    /// The number of lines of the properties. The count stops at ``maxLines`` + 1. A line takes up to a microsecond to
    /// parse.
    package var lineCount: Int {
        var count = 0
        for byte in body.readableBytesView where byte == QSIOPProperties.lf {
            count += 1
            if count > Self.maxLines { break }
        }
        return count
    }

    /// Parses the properties of a frame from a device.
    ///
    /// - Throws: WireError `.badBody` if they have more lines than ``maxLines``; `.badText` if they are not UTF-8, or
    ///   hold too many combining marks in a row (``StreamSafeText``).
    package func deviceProperties() throws(WireError) -> QSIOPProperties {
        guard lineCount <= Self.maxLines else {
            throw WireError(.badBody, "the properties have more than \(Self.maxLines) lines")
        }
        return try QSIOPProperties(parsing: body)
    }

    /// Parses the properties of a frame from a server, without a limit for lines and combining marks. A server may
    /// send more than a device. A device that refused a push would get the push again and again.
    ///
    /// - Throws: WireError `.badText` if they are not UTF-8.
    package func properties() throws(WireError) -> QSIOPProperties {
        try QSIOPProperties(parsing: body, isFromServer: true)
    }

    package var encodedBytes: Int { Self.headerBytes + body.readableBytes }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        guard let length = UInt16(exactly: body.readableBytes) else {
            throw .frameTooLong(body.readableBytes, limit: Self.maxBodyBytes)
        }
        buffer.reserveCapacity(minimumWritableBytes: encodedBytes)
        buffer.writeMultipleIntegers(Self.version, operation.rawValue, length)
        buffer.writeImmutableBuffer(body)
    }
}

/// The operation of a QSIOP frame (`op`).
public struct QSIOPOperation: RawRepresentable, Hashable, Sendable {
    /// The number on the wire, which need not be defined.
    public let rawValue: UInt16

    /// Creates the operation with this number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Asks for a pong.
    package static let ping = Self(rawValue: 0)
    /// Answers a ping.
    package static let pong = Self(rawValue: 1)
    /// Reports `userid`, the account to which the connection is bound.
    package static let report = Self(rawValue: 2)
    /// Extension: answers `report`, `pushAcknowledge` and unknown operations. The keys are `code` and `msg`.
    package static let response = Self(rawValue: 3)
    /// Extension: a push from the server. The keys are `id`, `title`, `body` and others.
    package static let push = Self(rawValue: 4)
    /// Extension: acknowledges a push. The key is `id`.
    package static let pushAcknowledge = Self(rawValue: 5)

    /// Whether the operation is defined.
    package var isKnown: Bool { rawValue <= 5 }

    /// Whether the operation belongs to the application; Hermes does not define it.
    package var isApplicationDefined: Bool { rawValue >= 16 }
}
