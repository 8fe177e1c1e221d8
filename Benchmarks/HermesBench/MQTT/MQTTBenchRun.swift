// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The state that the handlers of an MQTT benchmark share. All handlers run on one event loop.
final class MQTTBenchRun {
    /// Counts since the start of the run. They never decrease.
    struct Counts: Sendable {
        /// Deliveries to subscribers, without duplicates.
        var delivered = 0
        var duplicates = 0
        var disorders = 0
        var published = 0
        var acknowledged = 0
        var cycles = 0
        /// Unexpected packets, refused messages and subscriptions, and wrong payloads.
        var violations = 0
        var disconnected = 0
        var refused = 0
        var resumed = 0
    }

    let plan: MQTTBenchPlan
    var counts = Counts()
    /// The number of connections that have received a CONNACK and, if they had to subscribe, a SUBACK.
    var ready = 0
    var firstFailure = ""
    /// Whether connections are expected to end.
    var isEnding = false
    var isRunning = false
    var isMeasuring = false
    /// The number of cycles of `churn` during the measurement.
    var cyclesMeasured = 0
    private(set) var publishers: [MQTTBenchPublisher] = []
    /// The publishers whose windows may have room.
    private var open: [MQTTBenchPublisher] = []
    private(set) var latencies = LatencyHistogram()
    private var startedAt: UInt64 = 0
    private var timer: RepeatedTask?

    init(_ plan: MQTTBenchPlan) {
        self.plan = plan
        let count = [.conn, .churn].contains(plan.shape) ? 0 : plan.publishers
        for index in 0..<count { publishers.append(MQTTBenchPublisher(index, plan)) }
    }

    func fail(_ reason: String) {
        counts.violations += 1
        if firstFailure.isEmpty { firstFailure = reason }
    }

    func beginMeasuring() {
        latencies.reset()
        isMeasuring = true
    }

    func record(_ nanoseconds: UInt64) {
        if isMeasuring { latencies.record(max(1, nanoseconds)) }
    }

    // MARK: Publishing

    func start(on loop: any EventLoop) {
        isRunning = true
        startedAt = BenchStamp.now
        guard plan.rate != nil else {
            for publisher in publishers { mark(publisher) }
            return pump()
        }
        let run = NIOLoopBound(self, eventLoop: loop)
        timer = loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { _ in run.value.publishDue() }
    }

    func stop() {
        isRunning = false
        isMeasuring = false
        timer?.cancel()
    }

    /// Notes that a publisher's window may have room.
    func mark(_ publisher: MQTTBenchPublisher) {
        guard isRunning, plan.rate == nil, !publisher.isMarked else { return }
        publisher.isMarked = true
        open.append(publisher)
    }

    /// Lets publishers with room in their windows publish.
    func pump() {
        guard isRunning, !open.isEmpty else { return }
        let these = open
        open.removeAll(keepingCapacity: true)
        let now = BenchStamp.now
        for publisher in these {
            publisher.isMarked = false
            publisher.publish(plan, counts: &counts) { _ in now }
        }
    }

    /// Publishes the messages whose scheduled time has come (an open loop). Message k of publisher i is scheduled for
    /// (k · publishers + i) / rate seconds after the start. A message carries its scheduled time, even if it is sent
    /// later.
    private func publishDue() {
        guard isRunning, let rate = plan.rate else { return }
        let now = BenchStamp.now
        for publisher in publishers {
            publisher.publish(plan, counts: &counts) { [startedAt] number in
                let due = (Double(number) * Double(self.publishers.count) + Double(publisher.index)) * 1e9 / rate
                let moment = startedAt + UInt64(due)
                return moment <= now ? moment : nil
            }
        }
    }

    /// Stops waiting for missing messages, so that the windows have room again. Missing messages count as settled.
    func writeOff() {
        for publisher in publishers where publisher.settled < publisher.sent * plan.fan {
            publisher.settled = publisher.sent * plan.fan
            mark(publisher)
        }
        pump()
    }

    var sent: Int { publishers.reduce(0) { $0 + $1.sent } }

    var isDrained: Bool {
        counts.delivered >= sent * plan.fan && (plan.qos == .atMostOnce || counts.acknowledged >= sent)
    }

    /// Whether every publisher has sent all its messages and, with QoS 1 or 2, has received all acknowledgements.
    var isPublished: Bool {
        guard let messages = plan.messages else { return false }
        return sent >= messages * publishers.count && (plan.qos == .atMostOnce || counts.acknowledged >= sent)
    }
}

/// The state of a publisher. The handler of its connection sets ``context``.
final class MQTTBenchPublisher {
    let index: Int
    private let template: MQTTBenchTemplate
    var context: ChannelHandlerContext?
    var sent = 0
    /// The number of settled deliveries of the publisher's messages. A delivery is settled when a message has arrived,
    /// or when the benchmark no longer waits for it.
    var settled = 0
    var isMarked = false
    private var inflight = 0
    private var maxInflight: Int
    private var lastPacketID: UInt16 = 0
    /// The state of each packet identifier: 0 if it is free, 1 while it waits for PUBACK or PUBREC, 2 while it waits
    /// for PUBCOMP. The array is empty with QoS 0.
    private var states: [UInt8]

    init(_ index: Int, _ plan: MQTTBenchPlan) {
        self.index = index
        maxInflight = plan.window
        template = MQTTBenchTemplate(plan, topic: plan.topic(of: .publisher(index)))
        states = plan.qos == .atMostOnce ? [] : [UInt8](repeating: 0, count: 65_536)
    }

    /// Limits the unacknowledged messages to the server's receive maximum.
    func limit(to receiveMaximum: Int) { maxInflight = min(maxInflight, receiveMaximum) }

    /// Publishes the messages that the window allows, in one write of up to about 256 KiB.
    ///
    /// - Parameter moment: returns the time to write into the message with a given number; nil if it is too early to
    ///   send the message.
    func publish(_ plan: MQTTBenchPlan, counts: inout MQTTBenchRun.Counts, moment: (Int) -> UInt64?) {
        guard let context, context.channel.isWritable else { return }
        var buffer = ByteBuffer()
        while mayPublish(plan), let moment = moment(sent) {
            var packetID: UInt16 = 0
            if plan.qos != .atMostOnce {
                repeat { lastPacketID &+= 1 } while lastPacketID == 0 || states[Int(lastPacketID)] != 0
                packetID = lastPacketID
                states[Int(packetID)] = 1
                inflight += 1
            }
            template.write(UInt64(index) << 32 | UInt64(sent), at: moment, packetID: packetID, into: &buffer)
            sent += 1
            counts.published += 1
            if buffer.readableBytes > 262_144 { break }
        }
        guard buffer.readableBytes > 0 else { return }
        context.writeAndFlush(NIOAny(buffer), promise: nil)
    }

    private func mayPublish(_ plan: MQTTBenchPlan) -> Bool {
        if plan.qos != .atMostOnce, inflight >= maxInflight { return false }
        if let messages = plan.messages { return sent < messages }
        if plan.rate != nil { return true }
        return (sent + 1) * plan.fan - settled <= plan.window * plan.fan
    }

    /// Handles an acknowledgement.
    ///
    /// - Returns: whether the acknowledgement was expected.
    func answered(_ type: UInt8, _ packetID: UInt16, _ qos: MQTTQoS) -> Bool {
        let state = states.isEmpty ? 0 : states[Int(packetID)]
        switch (type, qos, state) {
        case (5, .exactlyOnce, 1):
            states[Int(packetID)] = 2
            return true
        case (4, .atLeastOnce, 1), (7, .exactlyOnce, 2):
            states[Int(packetID)] = 0
            inflight -= 1
            return true
        default:
            return false
        }
    }
}

/// The messages from one publisher that have arrived at one subscriber.
struct MQTTBenchStream {
    private var next: UInt64 = 0
    /// A bit for each of the last 64 messages, set if the message has arrived. The lowest bit stands for the newest
    /// message.
    private var window: UInt64 = 0
    private var missing: UInt64 = 0

    enum Outcome: Hashable {
        /// The message is newer than all previous messages; `skipped` messages directly before it have not arrived.
        case new(skipped: Int)
        /// The message was skipped before.
        case late
        case duplicate
    }

    mutating func arrived(_ number: UInt64) -> Outcome {
        if number >= next {
            let gap = number - next
            missing += gap
            window = gap >= 63 ? 1 : window << (gap + 1) | 1
            next = number + 1
            return .new(skipped: Int(gap))
        }
        let back = next - 1 - number
        // A message that is older than the window counts as late if any message is still missing, otherwise as a
        // duplicate.
        guard back < 64 ? window >> back & 1 == 0 : missing > 0 else { return .duplicate }
        if back < 64 { window |= 1 << back }
        if missing > 0 { missing -= 1 }
        return .late
    }
}
