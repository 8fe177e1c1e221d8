// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// A connection of an MQTT benchmark. It reads packets in place, because parsing them into objects would cost more than
/// the rest of the benchmark.
final class MQTTBenchHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let run: MQTTBenchRun
    private let role: MQTTBenchPlan.Role
    private let keepsSession: Bool
    private let publisher: MQTTBenchPublisher?
    private var streams: [MQTTBenchStream] = []
    private var inbox = BenchInbox()
    /// The acknowledgements of the packets in the current read. They are sent together when the read is complete.
    private var answers = ByteBuffer()
    private var isReady = false
    private var isLeaving = false
    private var heartbeat: RepeatedTask?
    private let startedAt = BenchStamp.now

    /// - Parameter keepsSession: whether the server keeps the session after the connection has ended.
    init(run: MQTTBenchRun, role: MQTTBenchPlan.Role, keepsSession: Bool = false) {
        self.run = run
        self.role = role
        self.keepsSession = keepsSession
        switch role {
        case .publisher(let index):
            publisher = run.publishers[index]
        case .subscriber:
            publisher = nil
            let count = run.plan.shape == .pair ? 1 : run.plan.publishers
            streams = Array(repeating: MQTTBenchStream(), count: count)
        case .idle, .churn:
            publisher = nil
        }
    }

    func channelActive(context: ChannelHandlerContext) {
        var buffer = ByteBuffer()
        try? run.plan.connect(role, keepsSession: keepsSession).write(into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        heartbeat?.cancel()
        publisher?.context = nil
        guard !isLeaving, !run.isEnding else { return }
        if isReady { run.counts.disconnected += 1 } else { run.counts.refused += 1 }
        if run.firstFailure.isEmpty { run.firstFailure = "the server closed a connection" }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let now = BenchStamp.now
        inbox.add(unwrapInboundIn(data)) { scan($0, now: now, context: context) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if answers.readableBytes > 0 {
            let bytes = answers
            answers = ByteBuffer()
            context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
        }
        run.pump()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard let publisher, context.channel.isWritable else { return }
        run.mark(publisher)
        run.pump()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Sends DISCONNECT; the server then closes the connection.
    func leave(_ context: ChannelHandlerContext) {
        isLeaving = true
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0xE0, 0])), promise: nil)
    }

    // MARK: Reading

    /// - Returns: the number of bytes in complete packets.
    private func scan(_ bytes: UnsafeRawBufferPointer, now: UInt64, context: ChannelHandlerContext) -> Int {
        var position = 0
        while bytes.count - position >= 2 {
            var length = 0
            var index = position + 1
            var shift = 0
            var isWhole = false
            while index < bytes.count, shift < 28 {
                let byte = bytes[index]
                index += 1
                length |= Int(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 {
                    isWhole = true
                    break
                }
            }
            guard isWhole, index + length <= bytes.count else { break }
            let body = UnsafeRawBufferPointer(rebasing: bytes[index..<(index + length)])
            received(bytes[position], body, now: now, context: context)
            position = index + length
        }
        return position
    }

    private func received(_ header: UInt8, _ body: UnsafeRawBufferPointer, now: UInt64, context: ChannelHandlerContext)
    {
        let type = header >> 4
        guard type >= 13 || body.count >= 2 else { return run.fail("a packet of type \(type) is too short") }
        switch type {
        case 3:
            published(qos: header >> 1 & 0b11, body, now: now, context: context)
        case 4, 5, 7:
            let packetID = UInt16(body[0]) << 8 | UInt16(body[1])
            if type == 5 { acknowledge(0x62, packetID) }
            guard let publisher else { return }
            if body.count > 2, body[2] >= 0x80 { run.fail("a message was refused: reason \(body[2])") }
            guard publisher.answered(type, packetID, run.plan.qos) else {
                return run.fail("unexpected answer of type \(type)")
            }
            guard type != 5 else { return }
            run.counts.acknowledged += 1
            run.mark(publisher)
        case 6:
            acknowledge(0x70, UInt16(body[0]) << 8 | UInt16(body[1]))
        case 2:
            connected(body, context)
        case 9:
            guard let reason = body.last, reason < 0x80 else { return run.fail("a subscription was refused") }
            if reason < run.plan.qos.rawValue { run.fail("a subscription got QoS \(reason)") }
            becameReady(context)
        case 13:
            run.counts.acknowledged += 1
        case 14:
            if !run.isEnding { run.fail("the server disconnected: reason \(body.first ?? 0)") }
        default:
            run.fail("the server sent a packet of type \(type)")
        }
    }

    private func acknowledge(_ header: UInt8, _ packetID: UInt16) {
        answers.writeMultipleIntegers(header, UInt8(2), packetID)
    }

    private func connected(_ body: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
        guard body[1] == 0 else {
            run.counts.refused += 1
            if run.firstFailure.isEmpty { run.firstFailure = "a connection was refused: reason \(body[1])" }
            return
        }
        if run.plan.version == .v5, let publisher { publisher.limit(to: receiveMaximum(body)) }
        let isResumed = body[0] & 1 == 1
        if isResumed { run.counts.resumed += 1 }
        switch role {
        case .subscriber where !isResumed, .churn:
            var buffer = ByteBuffer()
            try? run.plan.subscribe(role).write(into: &buffer)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        case .subscriber, .publisher, .idle:
            becameReady(context)
        }
    }

    /// Returns the receive maximum of a CONNACK: the number of unacknowledged messages that the server accepts.
    private func receiveMaximum(_ body: UnsafeRawBufferPointer) -> Int {
        let frame = MQTTFrame(header: 0x20, body: ByteBuffer(bytes: body))
        guard case .connack(let packet)? = try? MQTTPacket(frame, version: .v5) else { return 65_535 }
        return packet.properties.first { if case .receiveMaximum(let maximum) = $0 { Int(maximum) } else { nil } }
            ?? 65_535
    }

    private func becameReady(_ context: ChannelHandlerContext) {
        isReady = true
        run.ready += 1
        if let publisher {
            publisher.context = context
            run.mark(publisher)
        }
        if case .churn(let index) = role {
            var buffer = ByteBuffer()
            let template = MQTTBenchTemplate(run.plan, topic: run.plan.topic(of: role))
            template.write(UInt64(index), at: startedAt, packetID: 7, into: &buffer)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
        if run.plan.keepAlive > 0 { beat(context) }
    }

    /// Sends a PINGREQ every two thirds of the keep alive. The first PINGREQ is sent at a random time, so that the
    /// connections do not all send one at once.
    private func beat(_ context: ChannelHandlerContext) {
        let channel = context.channel
        let interval = Int64(run.plan.keepAlive) * 667
        let first = TimeAmount.milliseconds(.random(in: 0..<interval))
        heartbeat = context.eventLoop.scheduleRepeatedTask(initialDelay: first, delay: .milliseconds(interval)) { _ in
            channel.writeAndFlush(ByteBuffer(bytes: [0xC0, 0]), promise: nil)
        }
    }

    private func published(
        qos: UInt8,
        _ body: UnsafeRawBufferPointer,
        now: UInt64,
        context: ChannelHandlerContext
    ) {
        var position = 2 + (Int(body[0]) << 8 | Int(body[1]))
        if qos > 0 {
            guard position + 2 <= body.count else { return run.fail("a PUBLISH is too short") }
            acknowledge(qos == 1 ? 0x40 : 0x50, UInt16(body[position]) << 8 | UInt16(body[position + 1]))
            position += 2
        }
        if run.plan.version == .v5 {
            // No publisher sets properties. So a length of properties above 127, which needs more than one byte, is an
            // error.
            guard position < body.count, body[position] < 0x80 else { return run.fail("a PUBLISH is too short") }
            position += 1 + Int(body[position])
        }
        guard position <= body.count, body.count - position == run.plan.bytes,
            let stamp = BenchStamp.read(UnsafeRawBufferPointer(rebasing: body[position...]))
        else { return run.fail("a payload is not one that was published") }
        let index = Int(stamp.number >> 32)
        if case .churn(let own) = role {
            guard stamp.number == UInt64(own) else { return run.fail("a message reached the wrong receiver") }
            run.counts.cycles += 1
            run.record(now > startedAt ? now - startedAt : 1)
            return leave(context)
        }
        let stream = run.plan.shape == .pair ? 0 : index
        guard index < run.publishers.count, stream < streams.count else {
            return run.fail("a message reached the wrong receiver")
        }
        let publisher = run.publishers[index]
        switch streams[stream].arrived(stamp.number & 0xFFFF_FFFF) {
        case .duplicate:
            run.counts.duplicates += 1
            return
        case .late:
            run.counts.disorders += 1
            run.counts.delivered += 1
        case .new(let skipped):
            run.counts.delivered += 1
            publisher.settled += 1 + skipped
        }
        run.record(now > stamp.nanoseconds ? now - stamp.nanoseconds : 1)
        run.mark(publisher)
    }
}
