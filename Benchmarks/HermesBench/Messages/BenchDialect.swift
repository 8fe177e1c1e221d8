// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The protocol of a message benchmark. It writes and reads the frames.
enum BenchDialect: String, Sendable {
    case delimited
    case impb

    var defaultPort: Int { self == .delimited ? 9000 : 6969 }

    /// A frame from the server.
    enum Incoming {
        /// The login succeeded; `acknowledged` is the last acknowledged inbox seq.
        case loggedIn(acknowledged: UInt64)
        /// A message was committed; `inboxSeq` is its seq in the sender's inbox.
        case receipt(id: UInt64, inboxSeq: UInt64)
        /// An inbox entry arrived; `stamp` is nil if the entry has no text that contains a stamp.
        case message(inboxSeq: UInt64, stamp: (number: UInt64, nanoseconds: UInt64)?)
        case failure(id: UInt64, reason: String)
        /// The server ends the connection.
        case kicked(reason: String)
        case other
    }

    /// The id of the login request; the ids of messages start at 16.
    static let loginID: UInt64 = 1

    // MARK: Out

    func writeLogin(_ account: BenchAccount, into buffer: inout ByteBuffer) throws {
        switch self {
        case .delimited:
            var packet = Hermes_V1_Packet()
            packet.id = Self.loginID
            packet.authenticate.token = account.token
            packet.authenticate.device.id = account.device
            try DelimitedFrame.write(packet, into: &buffer)
        case .impb:
            var login = IMPB_login_request()
            login.token = account.token
            login.deviceID = account.device
            var user = IMPB_User_msg()
            user.cmd = .login
            user.body = try login.wireBytes()
            var common = IMPB_Common()
            common.method = .user
            common.body = try user.wireBytes()
            try IMPBFrame.write(common, seq: UInt32(Self.loginID), type: .request, into: &buffer)
        }
    }

    func writeAcknowledgement(upTo seq: UInt64, into buffer: inout ByteBuffer) throws {
        switch self {
        case .delimited:
            var packet = Hermes_V1_Packet()
            packet.acknowledge.upToSeq = seq
            try DelimitedFrame.write(packet, into: &buffer)
        case .impb:
            var acknowledge = IMPB_ack_request()
            acknowledge.upToSeq = seq
            var message = IMPB_Message_msg()
            message.cmd = .ack
            message.body = try acknowledge.wireBytes()
            var common = IMPB_Common()
            common.method = .message
            common.body = try message.wireBytes()
            try IMPBFrame.write(common, seq: 2, type: .request, into: &buffer)
        }
    }

    func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        switch self {
        case .delimited:
            var packet = Hermes_V1_Packet()
            packet.id = 2
            packet.ping = Hermes_V1_Ping()
            try DelimitedFrame.write(packet, into: &buffer)
        case .impb:
            try IMPBFrame(seq: 2, type: .ping).write(into: &buffer)
        }
    }

    /// Writes a message with a text of `textBytes` bytes, which contains the number and the time. The message is
    /// encoded by hand, because a protobuf object would cost more than the rest of the benchmark.
    func writeSend(
        id: UInt64,
        to uid: UInt32,
        clientID: String,
        number: UInt64,
        now: UInt64,
        textBytes: Int,
        into buffer: inout ByteBuffer
    ) {
        let text = Varint.fieldBytes(textBytes)
        switch self {
        case .delimited:
            let to = 1 + Varint.bytes(UInt64(uid))
            let send = Varint.fieldBytes(to) + Varint.fieldBytes(clientID.utf8.count) + Varint.fieldBytes(text)
            Varint.write(UInt64(1 + Varint.bytes(id) + Varint.fieldBytes(send)), into: &buffer)
            Varint.writeNumber(1, id, into: &buffer)
            Varint.writeHead(12, send, into: &buffer)
            Varint.writeHead(1, to, into: &buffer)
            Varint.writeNumber(1, UInt64(uid), into: &buffer)
            Varint.writeHead(2, clientID.utf8.count, into: &buffer)
            buffer.writeString(clientID)
            Varint.writeHead(3, text, into: &buffer)
        case .impb:
            let message =
                1 + Varint.bytes(UInt64(uid)) + Varint.fieldBytes(text)
                + Varint.fieldBytes(clientID.utf8.count)
            let body = Varint.fieldBytes(message)
            buffer.writeMultipleIntegers(
                IMPBFrame.magic,
                UInt32(truncatingIfNeeded: id),
                IMPBFrameType.message.rawValue,
                UInt16(truncatingIfNeeded: body)
            )
            Varint.writeHead(2, message, into: &buffer)
            Varint.writeNumber(2, UInt64(uid), into: &buffer)
            Varint.writeHead(13, clientID.utf8.count, into: &buffer)
            buffer.writeString(clientID)
            Varint.writeHead(6, text, into: &buffer)
        }
        Varint.writeHead(1, textBytes, into: &buffer)
        BenchStamp.write(number, at: now, bytes: textBytes, into: &buffer)
    }

    // MARK: In

    /// Calls `body` for each complete frame.
    ///
    /// - Returns: the number of bytes in complete frames.
    func scan(_ bytes: UnsafeRawBufferPointer, _ body: (Incoming) -> Void) -> Int {
        var position = 0
        while let (start, end) = frame(bytes, at: position) {
            let frame = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            switch self {
            case .delimited: body(Self.packet(frame))
            case .impb:
                let header = UnsafeRawBufferPointer(rebasing: bytes[position..<start])
                body(Self.impb(header, frame))
            }
            position = end
        }
        return position
    }

    /// Returns the range of the body of the frame at `position`; nil if the frame is incomplete.
    func frame(_ bytes: UnsafeRawBufferPointer, at position: Int) -> (start: Int, end: Int)? {
        switch self {
        case .delimited:
            var length = 0
            var index = position
            var shift = 0
            while index < bytes.count, shift < 35 {
                let byte = bytes[index]
                index += 1
                length |= Int(byte & 0x7F) << shift
                if byte < 0x80 { return index + length <= bytes.count ? (index, index + length) : nil }
                shift += 7
            }
            return nil
        case .impb:
            guard bytes.count - position >= IMPBFrame.headerBytes else { return nil }
            let length = bytes.loadUnaligned(fromByteOffset: position + 6, as: UInt16.self).bigEndian
            let start = position + IMPBFrame.headerBytes
            return start + Int(length) <= bytes.count ? (start, start + Int(length)) : nil
        }
    }

    private static func packet(_ bytes: UnsafeRawBufferPointer) -> Incoming {
        var id: UInt64 = 0
        var scanner = ProtoScanner(bytes)
        while let field = scanner.next() {
            switch field.number {
            case 1: id = field.value
            case 64:
                var result = ProtoScanner(field.bytes)
                while let field = result.next() {
                    switch field.number {
                    case 1: return .failure(id: id, reason: text(2, in: field.bytes))
                    case 2: return .loggedIn(acknowledged: ProtoScanner.find(6, in: field.bytes)?.value ?? 0)
                    case 3: return .receipt(id: id, inboxSeq: ProtoScanner.find(4, in: field.bytes)?.value ?? 0)
                    default: continue
                    }
                }
                return .other
            case 65:
                let seq = ProtoScanner.find(1, in: field.bytes)?.value ?? 0
                guard
                    let message = ProtoScanner.find(3, in: field.bytes),
                    let content = ProtoScanner.find(7, in: message.bytes),
                    let text = ProtoScanner.find(1, in: content.bytes)
                else { return .message(inboxSeq: seq, stamp: nil) }
                return .message(inboxSeq: seq, stamp: BenchStamp.read(text.bytes))
            case 68: return .kicked(reason: text(2, in: field.bytes))
            default: continue
            }
        }
        return .other
    }

    private static func impb(_ header: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer) -> Incoming {
        let id = UInt64(header.loadUnaligned(fromByteOffset: 1, as: UInt32.self).bigEndian)
        switch IMPBFrameType(rawValue: header[5]) {
        case .request:
            if let error = ProtoScanner.find(3, in: bytes) {
                return .failure(id: id, reason: text(2, in: error.bytes))
            }
            guard let answer = ProtoScanner.find(2, in: bytes)?.bytes else { return .other }
            if id == loginID { return .loggedIn(acknowledged: ProtoScanner.find(5, in: answer)?.value ?? 0) }
            return id >= 16 ? .receipt(id: id, inboxSeq: ProtoScanner.find(3, in: answer)?.value ?? 0) : .other
        case .message:
            guard let message = ProtoScanner.find(2, in: bytes)?.bytes else { return .other }
            let seq = ProtoScanner.find(12, in: message)?.value ?? 0
            guard let content = ProtoScanner.find(6, in: message), let text = ProtoScanner.find(1, in: content.bytes)
            else { return .message(inboxSeq: seq, stamp: nil) }
            return .message(inboxSeq: seq, stamp: BenchStamp.read(text.bytes))
        case .notification:
            guard ProtoScanner.find(1, in: bytes)?.value == 13 else { return .other }
            return .kicked(reason: ProtoScanner.find(3, in: bytes).map { text(2, in: $0.bytes) } ?? "")
        default:
            return .other
        }
    }

    private static func text(_ number: UInt64, in bytes: UnsafeRawBufferPointer) -> String {
        ProtoScanner.find(number, in: bytes).map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
    }
}

/// Writes protobuf's variable-length integers (varints), and the fields that use them.
enum Varint {
    static func bytes(_ value: UInt64) -> Int { max(1, (UInt64.bitWidth - value.leadingZeroBitCount + 6) / 7) }

    /// Returns the encoded size of a field whose number is below 16 and whose value has `length` bytes.
    static func fieldBytes(_ length: Int) -> Int { 1 + bytes(UInt64(length)) + length }

    static func write(_ value: UInt64, into buffer: inout ByteBuffer) {
        var rest = value
        while rest >= 0x80 {
            buffer.writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        buffer.writeInteger(UInt8(truncatingIfNeeded: rest))
    }

    static func writeNumber(_ field: UInt8, _ value: UInt64, into buffer: inout ByteBuffer) {
        buffer.writeInteger(field << 3)
        write(value, into: &buffer)
    }

    static func writeHead(_ field: UInt8, _ length: Int, into buffer: inout ByteBuffer) {
        buffer.writeInteger(field << 3 | 2)
        write(UInt64(length), into: &buffer)
    }
}
