// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Reads a client's WebSocket frames (RFC 6455). The payloads of its binary messages are one stream of bytes.
///
/// A stream protocol such as MQTT ignores message boundaries, so payload is passed on as it arrives. Frames may have
/// any length; only control frames, of at most 125 bytes, are buffered.
package struct WebSocketInput: WebSocketReading {
    /// A control frame.
    package enum Control: Sendable, Hashable {
        case ping(ByteBuffer)
        case pong
        /// The close code; nil if the frame had none.
        case close(UInt16?)
    }

    /// The reason to fail the connection; the raw value is the code of the close frame (section 7.4.1).
    package enum Failure: UInt16, Error, Sendable, Hashable {
        case protocolError = 1002
        /// The client sent a text message, but the protocol is binary.
        case unsupportedData = 1003
        /// The reason in a close frame is not UTF-8.
        case invalidText = 1007
        /// A frame is longer than any protocol allows.
        case messageTooBig = 1009
    }

    /// The kinds of messages.
    enum Message: Sendable {
        case text
        case binary
    }

    /// A control frame, or the beginning of a data frame.
    enum Event: Sendable {
        case control(Control)
        /// The header of a data frame; its payload follows.
        case frame(Message, bytes: UInt64, isLast: Bool)
    }

    private enum State: Sendable {
        case header
        case data(remaining: UInt64)
        case control(opcode: UInt8, length: Int)
    }

    private let takesText: Bool
    private var state = State.header
    /// The kind of the unfinished message; nil between messages.
    private var message: Message?
    /// The masking key of the present frame. The next payload byte is unmasked with the key's byte at `keyOffset`
    /// modulo 4.
    private var key: (UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0)
    private var keyOffset = 0
    private var furtherFrames = 0

    /// Creates a reader of binary messages.
    package init() { self.init(takesText: false) }

    init(takesText: Bool) { self.takesText = takesText }

    package mutating func takeFurtherFrames() -> Int {
        defer { furtherFrames = 0 }
        return furtherFrames
    }

    package mutating func take(
        from bytes: inout ByteBuffer,
        into data: inout ByteBuffer
    ) throws(Failure) -> Control? {
        while let event = try next(from: &bytes, into: &data) {
            if case .control(let control) = event { return control }
        }
        return nil
    }

    /// Reads payload until a frame begins, a control frame is complete, or the bytes run out.
    mutating func next(from bytes: inout ByteBuffer, into data: inout ByteBuffer) throws(Failure) -> Event? {
        while true {
            switch state {
            case .header:
                guard let header = try takeHeader(from: &bytes) else { return nil }
                if case .data(let length) = state {
                    return .frame(header.message, bytes: length, isLast: header.isFinal)
                }
            case .data(let remaining):
                guard remaining > 0 else {
                    state = .header
                    continue
                }
                let count = Int(min(remaining, UInt64(bytes.readableBytes)))
                guard count > 0 else { return nil }
                unmask(count, from: &bytes, into: &data)
                state = .data(remaining: remaining - UInt64(count))
            case .control(let opcode, let length):
                guard bytes.readableBytes >= length else { return nil }
                var payload = ByteBuffer()
                unmask(length, from: &bytes, into: &payload)
                state = .header
                return .control(try Self.control(opcode, payload))
            }
        }
    }

    /// - Returns: the kind of the message and whether the frame ends it, both valid only for a data frame; nil if more
    ///   bytes are needed.
    private mutating func takeHeader(from bytes: inout ByteBuffer) throws(Failure) -> (message: Message, isFinal: Bool)?
    {
        let start = bytes.readerIndex
        guard let first: UInt8 = bytes.getInteger(at: start) else { return nil }
        let opcode = first & 0x0F
        let isFinal = first & 0x80 != 0
        // No extension was negotiated, so the reserved bits must be 0.
        guard first & 0x70 == 0 else { throw .protocolError }
        let isControl = opcode & 0x08 != 0
        var kind = Message.binary
        switch opcode {
        case 0x0:
            guard let message else { throw .protocolError }
            kind = message
        case 0x1:
            guard takesText else { throw .unsupportedData }
            guard message == nil else { throw .protocolError }
            kind = .text
        case 0x2: guard message == nil else { throw .protocolError }
        case 0x8, 0x9, 0xA: guard isFinal else { throw .protocolError }
        default: throw .protocolError
        }
        guard let second: UInt8 = bytes.getInteger(at: start + 1) else { return nil }
        // A client must mask its frames (section 5.1).
        guard second & 0x80 != 0 else { throw .protocolError }
        let short = second & 0x7F
        guard !isControl || short <= 125 else { throw .protocolError }
        var length = UInt64(short)
        var size = 2
        if short == 126 {
            guard let long: UInt16 = bytes.getInteger(at: start + 2) else { return nil }
            guard long >= 126 else { throw .protocolError }
            length = UInt64(long)
            size = 4
        } else if short == 127 {
            guard let long: UInt64 = bytes.getInteger(at: start + 2) else { return nil }
            guard long > UInt64(UInt16.max), long <= UInt64(Int64.max) else { throw .protocolError }
            length = long
            size = 10
        }
        guard bytes.readableBytes >= size + 4, let mask = bytes.getBytes(at: start + size, length: 4) else {
            return nil
        }
        bytes.moveReaderIndex(forwardBy: size + 4)
        key = (mask[0], mask[1], mask[2], mask[3])
        keyOffset = 0
        if isControl || length == 0 || !isFinal { furtherFrames += 1 }
        if isControl {
            state = .control(opcode: opcode, length: Int(length))
        } else {
            message = isFinal ? nil : kind
            state = .data(remaining: length)
        }
        return (kind, isFinal)
    }

    private static func control(_ opcode: UInt8, _ payload: ByteBuffer) throws(Failure) -> Control {
        switch opcode {
        case 0x9: return .ping(payload)
        case 0xA: return .pong
        default:
            guard payload.readableBytes > 0 else { return .close(nil) }
            guard let code: UInt16 = payload.getInteger(at: payload.readerIndex), isAllowed(code) else {
                throw .protocolError
            }
            guard String(validating: payload.readableBytesView.dropFirst(2), as: UTF8.self) != nil else {
                throw .invalidText
            }
            return .close(code)
        }
    }

    /// Whether a code may appear in a close frame (section 7.4).
    private static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Moves bytes and removes their mask, eight bytes at a time.
    private mutating func unmask(_ count: Int, from bytes: inout ByteBuffer, into data: inout ByteBuffer) {
        guard count > 0 else { return }
        let offset = keyOffset & 3
        keyOffset = (offset + count) & 3
        let ring = [key.0, key.1, key.2, key.3]
        var word: UInt64 = 0
        for index in 0..<8 { word |= UInt64(ring[(offset + index) & 3]) << UInt64(8 * index) }
        word = UInt64(littleEndian: word)
        bytes.readWithUnsafeReadableBytes { source in
            data.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { target in
                var index = 0
                while index &+ 8 <= count {
                    let eight = source.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
                    target.storeBytes(of: eight, toByteOffset: index, as: UInt64.self)
                    index &+= 8
                }
                while index < count {
                    target[index] = source[index] ^ ring[(offset &+ index) & 3]
                    index &+= 1
                }
                return count
            }
            return count
        }
    }
}
