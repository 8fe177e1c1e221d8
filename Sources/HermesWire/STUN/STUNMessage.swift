// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The part of RFC 8489 that a STUN server needs: the Binding request, and its two answers, success and error.
///
///     0 0 | type 14 bits | length u16 | magic cookie u32 | transaction id 96 bits | attributes
package enum STUNMessage {
    /// The number that follows type and length in every message of RFC 5389 and its successor (RFC 8489, section 5).
    package static let magicCookie: UInt32 = 0x2112_A442
    /// The length of the header in bytes.
    package static let headerBytes = 20
    /// The longest accepted request, in bytes; usual requests have 20 to 100.
    package static let maxRequestBytes = 548

    /// A request of a client for its own address.
    package struct BindingRequest: Hashable, Sendable {
        /// The transaction id, which the answer repeats.
        package let transactionID: TransactionID
        /// The attributes that the server must understand but does not. If there are any, the answer is an error.
        package let unknownAttributes: [UInt16]
        /// Whether the request ends with a fingerprint. If so, the answer ends with a fingerprint, too.
        package let hasFingerprint: Bool
    }

    /// A transaction id of 96 bits.
    package struct TransactionID: Hashable, Sendable {
        package let high: UInt32
        package let low: UInt64

        package init(high: UInt32, low: UInt64) {
            self.high = high
            self.low = low
        }
    }

    private static let bindingRequest: UInt16 = 0x0001
    private static let bindingSuccess: UInt16 = 0x0101
    private static let bindingError: UInt16 = 0x0111
    private static let errorCode: UInt16 = 0x0009
    private static let unknownAttributes: UInt16 = 0x000A
    private static let xorMappedAddress: UInt16 = 0x0020
    private static let fingerprint: UInt16 = 0x8028
    /// Known attributes that have no effect on a server without accounts: USERNAME, MESSAGE-INTEGRITY, REALM, NONCE,
    /// MESSAGE-INTEGRITY-SHA256, USERHASH, PRIORITY and USE-CANDIDATE.
    private static let ignored: Set<UInt16> = [0x0006, 0x0008, 0x0014, 0x0015, 0x001C, 0x001E, 0x0024, 0x0025]

    // MARK: Reading

    /// Parses a datagram.
    ///
    /// - Returns: the request; nil if the datagram is not a complete Binding request. Such a datagram is not answered.
    package static func bindingRequest(in datagram: ByteBuffer) -> BindingRequest? {
        var bytes = datagram
        guard
            (headerBytes...maxRequestBytes).contains(bytes.readableBytes),
            let (type, length, cookie, high, low) = bytes.readMultipleIntegers(
                as: (UInt16, UInt16, UInt32, UInt32, UInt64).self
            ),
            type == bindingRequest, cookie == magicCookie, length % 4 == 0, Int(length) == bytes.readableBytes
        else { return nil }
        var unknown: [UInt16] = []
        var hasFingerprint = false
        while bytes.readableBytes > 0 {
            let start = bytes.readerIndex - datagram.readerIndex
            guard
                !hasFingerprint,
                let (attribute, valueBytes) = bytes.readMultipleIntegers(as: (UInt16, UInt16).self),
                var value = bytes.readSlice(length: (Int(valueBytes) + 3) & ~3)
            else { return nil }
            if attribute == fingerprint {
                guard valueBytes == 4, value.readInteger(as: UInt32.self) == checksum(datagram, upTo: start) else {
                    return nil
                }
                hasFingerprint = true
            } else if attribute < 0x8000, !ignored.contains(attribute) {
                unknown.append(attribute)
            }
        }
        return BindingRequest(
            transactionID: TransactionID(high: high, low: low),
            unknownAttributes: unknown,
            hasFingerprint: hasFingerprint
        )
    }

    // MARK: Writing

    /// Appends the answer: the address from which the request arrived, or an error if an attribute is not understood.
    ///
    /// - Returns: false if the address is neither IPv4 nor IPv6. If the result is false, nothing was written.
    @discardableResult
    package static func writeAnswer(
        to request: BindingRequest,
        from address: SocketAddress,
        into buffer: inout ByteBuffer
    ) -> Bool {
        let start = buffer.writerIndex
        buffer.writeMultipleIntegers(
            request.unknownAttributes.isEmpty ? bindingSuccess : bindingError,
            UInt16(0),
            magicCookie,
            request.transactionID.high,
            request.transactionID.low
        )
        if request.unknownAttributes.isEmpty {
            guard writeAddress(address, request.transactionID, into: &buffer) else {
                buffer.moveWriterIndex(to: start)
                return false
            }
        } else {
            writeError(request.unknownAttributes, into: &buffer)
        }
        if request.hasFingerprint {
            setLength(buffer.writerIndex - start + 8, at: start, in: &buffer)
            var message = buffer
            message.moveReaderIndex(to: start)
            let sum = checksum(message, upTo: message.readableBytes)
            buffer.writeMultipleIntegers(fingerprint, UInt16(4), sum)
        } else {
            setLength(buffer.writerIndex - start, at: start, in: &buffer)
        }
        return true
    }

    private static func setLength(_ messageBytes: Int, at start: Int, in buffer: inout ByteBuffer) {
        buffer.setInteger(UInt16(clamping: messageBytes - headerBytes), at: start + 2)
    }

    /// Writes the port, XORed with the cookie, and the address, XORed with the cookie and the transaction id. The XOR
    /// keeps middleboxes from rewriting port and address (section 14.2).
    private static func writeAddress(
        _ address: SocketAddress,
        _ id: TransactionID,
        into buffer: inout ByteBuffer
    ) -> Bool {
        // On all platforms, sockaddr_in has the address at byte 4, and sockaddr_in6 has it at byte 8.
        let bytes = address.withSockAddr { pointer, size in
            Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(pointer), count: size))
        }
        let port = UInt16(truncatingIfNeeded: address.port ?? 0) ^ UInt16(magicCookie >> 16)
        var mask = ByteBuffer()
        mask.writeMultipleIntegers(magicCookie, id.high, id.low)
        switch address {
        case .v4 where bytes.count >= 8:
            buffer.writeMultipleIntegers(xorMappedAddress, UInt16(8), UInt16(0x01), port)
            buffer.writeBytes(zip(bytes[4..<8], mask.readableBytesView).map { $0 ^ $1 })
        case .v6 where bytes.count >= 24:
            buffer.writeMultipleIntegers(xorMappedAddress, UInt16(20), UInt16(0x02), port)
            buffer.writeBytes(zip(bytes[8..<24], mask.readableBytesView).map { $0 ^ $1 })
        case .v4, .v6, .unixDomainSocket:
            return false
        }
        return true
    }

    /// Writes the error 420, Unknown Attribute, with the numbers of at most 16 attributes (sections 14.8 and 14.9).
    private static func writeError(_ attributes: [UInt16], into buffer: inout ByteBuffer) {
        let reason = "Unknown Attribute"
        buffer.writeMultipleIntegers(errorCode, UInt16(4 + reason.utf8.count), UInt16(0), UInt8(4), UInt8(20))
        buffer.writeString(reason)
        buffer.writeRepeatingByte(0, count: -reason.utf8.count & 3)
        let told = attributes.prefix(16)
        buffer.writeMultipleIntegers(unknownAttributes, UInt16(2 * told.count))
        for attribute in told { buffer.writeInteger(attribute) }
        buffer.writeRepeatingByte(0, count: -2 * told.count & 3)
    }

    /// Returns the value of the fingerprint: the CRC-32 of the message before it, XORed with "STUN" (section 14.7).
    private static func checksum(_ message: ByteBuffer, upTo count: Int) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in message.readableBytesView.prefix(count) {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        return ~crc ^ 0x5354_554E
    }
}
