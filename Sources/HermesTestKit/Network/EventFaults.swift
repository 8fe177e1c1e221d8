// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// Loses and repeats single events on their way from a server to a client, and counts the lost and repeated events.
/// It reads the frames of each carrier of the native protocol. Everything except events passes unchanged.
///
/// State: the counts of all connections, in a lock. The state of one connection is in ``EventFilter``.
package final class EventFaults: Sendable {
    /// The fate of an event.
    package enum Verdict: Sendable {
        case pass
        case lose
        case twice
    }

    /// The form in which packets travel.
    package enum Framing: Sendable {
        case delimited
        case mqtt
    }

    /// The events that were lost, and how many times the inbox entries were passed on.
    package struct Counts: Sendable {
        /// The seqs of inbox entries that were lost at least once.
        package var lost: Set<UInt64> = []
        /// The number of times that each inbox entry was passed on to the client.
        package var passed: [UInt64: Int] = [:]
        /// The numbers of a room's pushes that were lost.
        package var lostPushes: Set<UInt64> = []

        /// The number of repetitions: how many times entries were passed on to the client again after the first time.
        package var repeated: Int { passed.values.reduce(0) { $0 + $1 - 1 } }
    }

    let framing: Framing
    let isWebSocket: Bool
    let burst: Int
    private let entry: @Sendable (UInt64) -> Verdict
    private let push: @Sendable (UInt64) -> Verdict
    private let state = NIOLockedValueBox(Counts())

    /// - Parameters:
    ///   - framing: the form in which packets travel.
    ///   - isWebSocket: whether packets travel in a WebSocket.
    ///   - burst: the number of new entries that are held back and then passed on together. So the entries that follow
    ///     a lost one arrive all at once.
    ///   - entry: decides about the inbox entry with this seq when it arrives for the first time. When it arrives
    ///     again, it is passed on.
    ///   - push: decides about the push to a room with this number.
    package init(
        _ framing: Framing,
        isWebSocket: Bool,
        burst: Int = 1,
        entry: @escaping @Sendable (UInt64) -> Verdict,
        push: @escaping @Sendable (UInt64) -> Verdict = { _ in .pass }
    ) {
        self.framing = framing
        self.isWebSocket = isWebSocket
        self.burst = burst
        self.entry = entry
        self.push = push
    }

    /// The counts so far.
    package var counts: Counts { state.withLockedValue { $0 } }

    /// Returns how many times a packet is passed on. For an inbox entry, records this number; for an entry or a push,
    /// also records a loss.
    fileprivate func copies(of packet: Hermes_V1_Packet) -> Int {
        switch packet.body {
        case .event(let event) where event.seq > 0:
            return state.withLockedValue { state in
                let isFirst = state.passed[event.seq] == nil && !state.lost.contains(event.seq)
                let verdict = isFirst ? entry(event.seq) : .pass
                if verdict == .lose { state.lost.insert(event.seq) }
                let copies = verdict.copies
                if copies > 0 { state.passed[event.seq, default: 0] += copies }
                return copies
            }
        case .ephemeral(let ephemeral):
            guard case .room(let room) = ephemeral.event, room.topicSeq > 0 else { return 1 }
            let verdict = push(room.topicSeq)
            if verdict == .lose { state.withLockedValue { _ = $0.lostPushes.insert(room.topicSeq) } }
            return verdict.copies
        default:
            return 1
        }
    }

    /// Returns whether the packet is an inbox entry for which no ``Verdict`` has been made yet.
    fileprivate func isNewEntry(_ packet: Hermes_V1_Packet) -> Bool {
        guard case .event(let event) = packet.body, event.seq > 0 else { return false }
        return state.withLockedValue { $0.passed[event.seq] == nil && !$0.lost.contains(event.seq) }
    }
}

extension EventFaults.Verdict {
    fileprivate var copies: Int {
        switch self {
        case .lose: 0
        case .pass: 1
        case .twice: 2
        }
    }
}

/// Applies the faults to the bytes that one connection carries from the server to the client. It is used on the
/// connection's event loop only.
struct EventFilter {
    private let faults: EventFaults
    private var bytes = ByteBuffer()
    private var webSocket: WebSocketSplitter?
    private var held: [(frame: PacketFrame, packet: Hermes_V1_Packet)] = []

    private enum PacketFrame {
        case delimited(DelimitedFrame)
        case mqtt(MQTTFrame)
    }

    init(_ faults: EventFaults) {
        self.faults = faults
        webSocket = faults.isWebSocket ? WebSocketSplitter() : nil
    }

    /// Returns the bytes for the client.
    ///
    /// - Throws: if the server's bytes are not valid frames or packets.
    mutating func pass(_ arrived: ByteBuffer) throws -> ByteBuffer {
        guard var splitter = webSocket else { return try filter(arrived) }
        defer { webSocket = splitter }
        var output = ByteBuffer()
        for part in splitter.split(arrived) {
            switch part {
            case .other(let bytes): output.writeImmutableBuffer(bytes)
            case .content(let content): WebSocketSplitter.write(try filter(content), into: &output)
            }
        }
        return output
    }

    private mutating func filter(_ arrived: ByteBuffer) throws -> ByteBuffer {
        bytes.writeImmutableBuffer(arrived)
        var output = ByteBuffer()
        while let frame = try nextFrame() {
            guard let packet = try Self.packet(in: frame) else {
                try Self.write(frame, into: &output)
                continue
            }
            if faults.isNewEntry(packet), faults.burst > 1 {
                held.append((frame, packet))
                guard held.count == faults.burst else { continue }
                for (frame, packet) in held { try write(frame, packet, into: &output) }
                held = []
            } else {
                try write(frame, packet, into: &output)
            }
        }
        bytes.discardReadBytes()
        return output
    }

    private mutating func nextFrame() throws -> PacketFrame? {
        switch faults.framing {
        case .delimited:
            var decoder = DelimitedFrameDecoder()
            return try decoder.next(from: &bytes).map { .delimited($0) }
        case .mqtt:
            var decoder = MQTTFrameDecoder()
            return try decoder.next(from: &bytes).map { .mqtt($0) }
        }
    }

    private static func packet(in frame: PacketFrame) throws -> Hermes_V1_Packet? {
        switch frame {
        case .delimited(let frame): return try frame.packet(maxParts: nil)
        case .mqtt(let frame):
            guard frame.type == .publish, case .publish(let publish) = try MQTTPacket(frame, version: .v5) else {
                return nil
            }
            return try Hermes_V1_Packet(wire: publish.payload, maxParts: nil)
        }
    }

    private func write(_ frame: PacketFrame, _ packet: Hermes_V1_Packet, into output: inout ByteBuffer) throws {
        for _ in 0..<faults.copies(of: packet) { try Self.write(frame, into: &output) }
    }

    private static func write(_ frame: PacketFrame, into output: inout ByteBuffer) throws {
        switch frame {
        case .delimited(let frame): try frame.write(into: &output)
        case .mqtt(let frame): try frame.write(into: &output)
        }
    }
}

/// Splits the bytes that a server sends over a WebSocket into the contents of data frames and everything else.
private struct WebSocketSplitter {
    enum Part {
        /// The answer to the upgrade, or a control frame.
        case other(ByteBuffer)
        case content(ByteBuffer)
    }

    private var bytes = ByteBuffer()
    private var isOpen = false

    mutating func split(_ arrived: ByteBuffer) -> [Part] {
        bytes.writeImmutableBuffer(arrived)
        var parts: [Part] = []
        if !isOpen {
            guard let end = bytes.readableBytesView.firstRange(of: Array("\r\n\r\n".utf8)),
                let head = bytes.readSlice(length: end.upperBound - bytes.readerIndex)
            else { return [] }
            isOpen = true
            parts.append(.other(head))
        }
        while let part = nextFrame() { parts.append(part) }
        bytes.discardReadBytes()
        return parts
    }

    /// Returns the next complete frame. Servers do not mask their frames (RFC 6455, section 5.1).
    private mutating func nextFrame() -> Part? {
        let start = bytes.readerIndex
        guard let first = bytes.getInteger(at: start, as: UInt8.self),
            let short = bytes.getInteger(at: start + 1, as: UInt8.self)
        else { return nil }
        var length = Int(short)
        var header = 2
        if short == 126 {
            guard let told = bytes.getInteger(at: start + 2, as: UInt16.self) else { return nil }
            (length, header) = (Int(told), 4)
        } else if short == 127 {
            guard let told = bytes.getInteger(at: start + 2, as: UInt64.self) else { return nil }
            (length, header) = (Int(told), 10)
        }
        guard bytes.readableBytes >= header + length, var frame = bytes.readSlice(length: header + length) else {
            return nil
        }
        // Opcodes from 8 on are control frames.
        if first & 0x0F >= 8 { return .other(frame) }
        frame.moveReaderIndex(forwardBy: header)
        return .content(frame)
    }

    static func write(_ content: ByteBuffer, into output: inout ByteBuffer) {
        guard content.readableBytes > 0 else { return }
        output.writeInteger(0x82 as UInt8)
        switch content.readableBytes {
        case ...125: output.writeInteger(UInt8(content.readableBytes))
        case ...0xFFFF:
            output.writeInteger(126 as UInt8)
            output.writeInteger(UInt16(content.readableBytes))
        default:
            output.writeInteger(127 as UInt8)
            output.writeInteger(UInt64(content.readableBytes))
        }
        output.writeImmutableBuffer(content)
    }
}
