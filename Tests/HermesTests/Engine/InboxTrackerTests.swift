// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

@Suite struct InboxTrackerTests {
    typealias Tracker = InboxTracker<String>
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// Records the outputs of a tracker.
    struct Probe {
        var tracker: Tracker
        var delivered: [UInt64] = []
        var missed: [ClosedRange<UInt64>] = []
        var synchronized: [UInt64] = []
        var acknowledged: [UInt64] = []

        init(head: UInt64 = 0) {
            tracker = Tracker()
            _ = tracker.resumed(epoch: 1, serverAcknowledged: 0, head: head, now: start)
        }

        mutating func run(_ body: (inout Tracker, inout [Tracker.Output]) -> Void) {
            var output: [Tracker.Output] = []
            body(&tracker, &output)
            for output in output {
                switch output {
                case .deliver(let seq, _): delivered.append(seq)
                case .missed(let range): missed.append(range)
                case .synchronize(let seq): synchronized.append(seq)
                case .acknowledge(let seq): acknowledged.append(seq)
                }
            }
        }

        mutating func arrive(_ seqs: UInt64..., own: Bool = false) {
            for seq in seqs {
                run { $0.arrived(own ? nil : "\(seq)", seq: seq, to: seq, now: start, output: &$1) }
            }
        }

        mutating func pass(_ time: TimeAmount) { run { $0.deadlineReached(now: start + time, output: &$1) } }
        mutating func take(_ seq: UInt64) { run { $0.taken(seq: seq, now: start, output: &$1) } }
    }

    @Test func `entries come once and in order, whatever the wire does`() {
        var probe = Probe()
        probe.arrive(1, 1, 3, 2, 2, 3, 5, 4, 1)
        #expect(probe.delivered == [1, 2, 3, 4, 5])
        #expect(probe.synchronized.isEmpty)
    }

    @Test func `one's own message fills its hole without reaching the app`() {
        var probe = Probe()
        probe.arrive(1, 3)
        #expect(probe.delivered == [1])
        probe.arrive(2, own: true)
        #expect(probe.delivered == [1, 3])
        probe.pass(.seconds(1))
        #expect(probe.synchronized.isEmpty)
    }

    @Test func `an entry that is skipped takes no entry before it`() {
        var probe = Probe()
        probe.arrive(1, 2, 3)
        probe.run { $0.skipped(seq: 2, now: Self.start, output: &$1) }
        #expect(probe.tracker.taken == 0)
        probe.take(1)
        #expect(probe.tracker.taken == 2)
        probe.run { $0.skipped(seq: 0, now: Self.start, output: &$1) }
        #expect(probe.tracker.taken == 2)
        probe.take(3)
        #expect(probe.tracker.taken == 3)
    }

    @Test func `a hole that stays is asked for, again and again`() {
        var probe = Probe()
        probe.arrive(1, 4)
        probe.pass(.milliseconds(299))
        #expect(probe.synchronized.isEmpty)
        probe.pass(.milliseconds(300))
        #expect(probe.synchronized == [1])
        probe.pass(.seconds(6))
        #expect(probe.synchronized == [1, 1])
        probe.arrive(2, 3, 4)
        #expect(probe.delivered == [1, 2, 3, 4])
        #expect(probe.tracker.nextDeadline != nil || probe.acknowledged.isEmpty)
    }

    @Test func `what the server no longer has is told as missed`() {
        var probe = Probe()
        probe.arrive(1, 9)
        probe.pass(.seconds(1))
        probe.run { $0.synchronized(epoch: 1, head: 9, oldest: 5, now: Self.start, output: &$1) }
        #expect(probe.missed == [2...4])
        probe.arrive(5, 6, 7, 8)
        #expect(probe.delivered == [1, 5, 6, 7, 8, 9])
    }

    @Test func `only what was taken is acknowledged`() {
        var probe = Probe()
        probe.arrive(1, 2, 3)
        probe.arrive(4, own: true)
        probe.pass(.seconds(1))
        #expect(probe.acknowledged.isEmpty)
        probe.take(2)
        probe.pass(.seconds(1))
        #expect(probe.acknowledged == [2])
        probe.take(3)
        probe.pass(.seconds(1))
        #expect(probe.acknowledged == [2, 4])
    }

    @Test func `acknowledgements are collected, but not for ever`() {
        var probe = Probe()
        for seq in UInt64(1)...200 {
            probe.arrive(seq)
            probe.take(seq)
        }
        #expect(probe.acknowledged == [64, 128, 192])
    }

    @Test func `an app that takes nothing does not grow the memory, and loses nothing`() {
        var probe = Probe()
        let count = UInt64(Tracker.pauseAbove + 500)
        for seq in 1...count { probe.arrive(seq) }
        #expect(probe.delivered.count == Tracker.pauseAbove + 1)
        let last = UInt64(probe.delivered.count)
        for seq in 1...last { probe.take(seq) }
        #expect(probe.synchronized == [last])
        for seq in (last + 1)...count { probe.arrive(seq) }
        #expect(probe.delivered == Array(1...count))
    }

    @Test func `a pause ends the delivery of what waits behind a hole, and loses nothing`() {
        var probe = Probe()
        probe.arrive(1, 3, 4)
        probe.tracker.isFull = true
        probe.arrive(2, own: true)
        #expect(probe.delivered == [1])
        probe.tracker.isFull = false
        probe.take(1)
        #expect(probe.synchronized == [2])
        probe.arrive(3, 4)
        #expect(probe.delivered == [1, 3, 4])
    }

    @Test func `a pause also ends when the app takes the last event of another inbox`() {
        var probe = Probe()
        probe.tracker.isFull = true
        probe.arrive(1)
        probe.tracker.isFull = false
        probe.take(0)
        #expect(probe.synchronized == [0])
        probe.arrive(1)
        #expect(probe.delivered == [1])
        probe.pass(.seconds(1))
        #expect(probe.acknowledged.isEmpty)
    }

    @Test func `after a reconnect the cursor is what was taken, and what comes again is dropped`() {
        var probe = Probe()
        probe.arrive(1, 2, 3)
        probe.take(1)
        #expect(probe.tracker.taken == 1)
        _ = probe.tracker.resumed(epoch: 1, serverAcknowledged: 0, head: 4, now: Self.start)
        probe.arrive(2, 3, 4)
        #expect(probe.delivered == [1, 2, 3, 4])
    }

    @Test func `one's own message that was ahead of a hole stays out of the app's sight after a reconnect`() {
        var probe = Probe()
        probe.arrive(1)
        probe.arrive(3, own: true)
        _ = probe.tracker.resumed(epoch: 1, serverAcknowledged: 0, head: 3, now: Self.start)
        probe.arrive(1, 2, 3)
        #expect(probe.delivered == [1, 2])
    }

    @Test func `another epoch starts anew behind the server's record`() {
        var probe = Probe()
        probe.arrive(1, 2, 3)
        _ = probe.tracker.resumed(epoch: 2, serverAcknowledged: 7, head: 8, now: Self.start)
        probe.arrive(8)
        #expect(probe.delivered == [1, 2, 3, 8])
        #expect(probe.tracker.epoch == 2)
    }

    @Test func `a head below what came means that the rest is lost, and its numbers are given to others`() {
        var probe = Probe()
        probe.arrive(1, 2, 3, 4, 5, 7)
        probe.take(4)
        let resumption = probe.tracker.resumed(epoch: 1, serverAcknowledged: 3, head: 3, now: Self.start)
        #expect(resumption == .rewound(to: 3))
        #expect(probe.tracker.taken == 3)
        // These are new entries, although their seqs have arrived before.
        probe.arrive(4, 5, 6)
        #expect(probe.delivered == [1, 2, 3, 4, 5, 4, 5, 6])
        probe.take(6)
        probe.pass(.seconds(1))
        #expect(probe.acknowledged.last == 6)
    }

    @Test func `what waits for the app and is not behind the new head keeps its place`() {
        var probe = Probe()
        probe.arrive(1, 2, 3, 4)
        probe.take(1)
        #expect(
            probe.tracker.resumed(epoch: 1, serverAcknowledged: 1, head: 3, now: Self.start) == .rewound(to: 3)
        )
        #expect(probe.tracker.taken == 1)
        probe.arrive(2, 3, 4)
        #expect(probe.delivered == [1, 2, 3, 4, 4])
        probe.take(3)
        #expect(probe.tracker.taken == 3)
    }

    @Test func `no number from the server is too great`() {
        var probe = Probe()
        probe.arrive(.max, .max - 1, 0)
        probe.run { $0.arrived("x", seq: 1, to: .max, now: Self.start, output: &$1) }
        probe.run { $0.arrived("x", seq: 1, to: .max - 1, now: Self.start, output: &$1) }
        probe.arrive(.max, 1, .max - 1)
        probe.run { $0.synchronized(epoch: 1, head: .max, oldest: .max, now: Self.start, output: &$1) }
        _ = probe.tracker.resumed(epoch: .max, serverAcknowledged: .max, head: .max, now: Self.start)
        probe.arrive(.max, 1)
        probe.pass(.hours(1))
    }
}
