// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

@Suite struct TopicTrackerTests {
    @Test func `what lies between two numbers of a topic was missed`() {
        var tracker = TopicTracker()
        #expect(tracker.arrived(7, epoch: 1, on: "a") == nil, "nothing is known of those before the first")
        #expect(tracker.arrived(8, epoch: 1, on: "a") == nil)
        #expect(tracker.arrived(3, epoch: 1, on: "b") == nil)
        #expect(tracker.arrived(10, epoch: 1, on: "a") == 9...9)
        #expect(tracker.arrived(14, epoch: 1, on: "a") == 11...13)
        #expect(tracker.arrived(4, epoch: 1, on: "b") == nil)
        #expect(tracker.missed == 4)
    }

    @Test func `one that comes again or late is no gap, and opens none`() {
        var tracker = TopicTracker()
        for seq: UInt64 in [5, 5, 4, 6] { #expect(tracker.arrived(seq, epoch: 1, on: "a") == nil) }
        #expect(tracker.missed == 0)
    }

    @Test func `two topics that only look alike are numbered separately`() {
        var tracker = TopicTracker()
        #expect(tracker.arrived(1, epoch: 1, on: "\u{E9}") == nil)
        #expect(tracker.arrived(5, epoch: 1, on: "e\u{301}") == nil)
        #expect(tracker.arrived(2, epoch: 1, on: "\u{E9}") == nil)
        tracker.forget("\u{E9}")
        #expect(tracker.arrived(7, epoch: 1, on: "e\u{301}") == 6...6)
    }

    @Test func `another epoch cannot be compared`() {
        var tracker = TopicTracker()
        _ = tracker.arrived(5, epoch: 1, on: "a")
        #expect(tracker.arrived(9, epoch: 2, on: "a") == nil)
        #expect(tracker.arrived(11, epoch: 2, on: "a") == 10...10)
        #expect(tracker.arrived(6, epoch: 1, on: "a") == nil)
    }

    @Test func `a kept one begins nothing, but counts once the topic is watched`() {
        var tracker = TopicTracker()
        #expect(tracker.arrived(5, epoch: 1, on: "a", isKept: true) == nil)
        #expect(tracker.arrived(8, epoch: 1, on: "a") == nil)
        #expect(tracker.arrived(10, epoch: 1, on: "a", isKept: true) == 9...9)
        #expect(tracker.arrived(11, epoch: 1, on: "a") == nil)
    }

    @Test func `what was unsubscribed is not missed`() {
        var tracker = TopicTracker()
        for topic in ["a", "b"] { _ = tracker.arrived(1, epoch: 1, on: topic) }
        tracker.forget("a")
        #expect(tracker.arrived(5, epoch: 1, on: "a") == nil)
        #expect(tracker.arrived(5, epoch: 1, on: "b") == 2...4)
        tracker.forgetAll()
        for topic in ["a", "b"] { #expect(tracker.arrived(9, epoch: 1, on: topic) == nil) }
    }

    @Test func `the topic that was silent for longest is forgotten first`() {
        var tracker = TopicTracker()
        for number in 0..<TopicTracker.maxTopics { _ = tracker.arrived(1, epoch: 1, on: "\(number)") }
        #expect(tracker.arrived(3, epoch: 1, on: "0") == 2...2)
        _ = tracker.arrived(1, epoch: 1, on: "one too many")
        #expect(tracker.arrived(5, epoch: 1, on: "0") == 4...4)
        #expect(tracker.arrived(9, epoch: 1, on: "1") == nil)
        #expect(tracker.arrived(5, epoch: 1, on: "one too many") == 2...4)
    }

    @Test(arguments: [UInt64.max, UInt64.max - 1, 1, 0])
    func `numbers at the ends break nothing`(seq: UInt64) {
        for first: UInt64 in [0, 1, .max - 1, .max] {
            var tracker = TopicTracker()
            _ = tracker.arrived(first, epoch: .max, on: "")
            let missed = tracker.arrived(seq, epoch: .max, on: "")
            #expect(missed.map { $0.lowerBound == first + 1 && $0.upperBound == seq - 1 } ?? true)
            _ = tracker.arrived(.max, epoch: .max, on: "")
        }
    }

    @Test func `missed pushes are counted until the server has the count`() throws {
        var counter = DeliveryCounter()
        counter.entered("wifi")
        counter.missedPushes(3, date: 100)
        #expect(counter.upload(appVersion: "")?.networks.first?.topicMissed == 3)
        counter.missedPushes(2, date: 200)
        counter.uploadFailed()
        #expect(counter.upload(appVersion: "")?.networks.first?.topicMissed == 5)
    }
}
