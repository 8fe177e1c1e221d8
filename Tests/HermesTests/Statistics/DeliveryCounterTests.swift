// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import Hermes

@Suite struct DeliveryCounterTests {
    @Test func `counts are kept per kind of network, with the span that they cover`() throws {
        var counter = DeliveryCounter()
        counter.entered("wifi")
        for latency: Int64? in [nil, 0, 1000, 1001, 10_000, 10_001] { counter.received(latency: latency, date: 100) }
        counter.noticed(InboxCounts(duplicates: 1, gaps: 5, repaired: 3, lost: 2), date: 150)
        counter.ended(.heartbeatTimeout, in: "wifi", date: 200)
        counter.entered("cellular")
        counter.ended(.networkChanged, in: "wifi", date: 250)
        counter.received(latency: 1, date: 300)
        counter.learned(LearnedHeartbeat(interval: .seconds(240), isStable: true), date: 300)
        let uploaded = counter.upload(appVersion: "1.2")
        let report = try #require(uploaded)
        #expect(report.appVersion == "1.2")
        #expect(report.networks.map(\.label) == ["cellular", "wifi"])
        let wifi = report.networks[1]
        #expect(wifi.received == 6 && wifi.within1S == 2 && wifi.within10S == 2 && wifi.later == 1)
        #expect(wifi.duplicates == 1 && wifi.gaps == 5 && wifi.repaired == 3 && wifi.lost == 2)
        #expect(wifi.heartbeatTimeouts == 1 && wifi.networkChanges == 1 && wifi.closed == 0)
        #expect(wifi.fromMs == 100 && wifi.toMs == 250)
        #expect(report.networks[0].heartbeatSeconds == 240 && report.networks[0].heartbeatStable)
    }

    @Test func `what could not be uploaded is uploaded with what came since, once`() throws {
        var counter = DeliveryCounter()
        counter.entered("wifi")
        counter.received(latency: 1, date: 100)
        let first = counter.upload(appVersion: "")
        #expect(first?.networks[0].received == 1)
        counter.received(latency: 1, date: 200)
        // There is only one upload at a time.
        let second = counter.upload(appVersion: "")
        #expect(second == nil)
        #expect(counter.unsent(appVersion: "")?.networks[0].received == 2)
        counter.uploadFailed()
        let third = counter.upload(appVersion: "")
        let again = try #require(third)
        #expect(again.networks[0].received == 2 && again.networks[0].fromMs == 100 && again.networks[0].toMs == 200)
        counter.uploadEnded()
        #expect(counter.isEmpty)
    }

    @Test func `of many kinds of network those beyond the bound are counted together`() throws {
        var counter = DeliveryCounter()
        for number in 1...40 {
            counter.entered("kind-\(number)")
            counter.received(latency: 1, date: 1)
        }
        let uploaded = counter.upload(appVersion: "")
        let report = try #require(uploaded)
        #expect(report.networks.count == DeliveryCounter.maxNetworks)
        #expect(report.networks.map(\.received).reduce(0, +) == 40)
    }

    @Test func `a network's kind is what may leave the device`() {
        #expect(NetworkPath(label: "wifi 192.168.1.1").kind == "wifi")
        #expect(NetworkPath(label: "x", kind: "cellular:26201").kind == "cellular:26201")
        #expect(NetworkPath(label: "café\n wifi").kind == "caf")
    }

    /// Arrivals, and a tracker's counts for them. At nil, the time for the repair passes.
    static let arrivals: [([ClosedRange<UInt64>?], InboxCounts)] = [
        ([1...1, 2...2, 2...2, 1...1], InboxCounts(duplicates: 2)),
        // Entries out of order are not a gap if they were not requested.
        ([2...2, 1...1], InboxCounts()),
        ([3...3, nil, 1...1, 2...2], InboxCounts(gaps: 2, repaired: 2)),
        ([3...3, nil, nil, 1...1, 6...6, nil, 2...2, 5...5, 4...4], InboxCounts(gaps: 4, repaired: 4)),
        ([3...3, nil, 3...3, 2...2], InboxCounts(duplicates: 1, gaps: 2, repaired: 1)),
    ]

    @Test(arguments: arrivals)
    func `gaps are counted once they had to be asked for`(seqs: [ClosedRange<UInt64>?], counts: InboxCounts) {
        var tracker = InboxTracker<String>()
        var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        var output: [InboxTracker<String>.Output] = []
        _ = tracker.resumed(epoch: 1, serverAcknowledged: 0, head: 0, now: now)
        for range in seqs {
            if let range {
                tracker.arrived("x", seq: range.lowerBound, to: range.upperBound, now: now, output: &output)
            } else {
                now = now + .seconds(1)
                tracker.deadlineReached(now: now, output: &output)
            }
        }
        #expect(tracker.counts == counts)
    }

    @Test func `what the server no longer has is lost, but not what is here already`() {
        var tracker = InboxTracker<String>()
        var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        var output: [InboxTracker<String>.Output] = []
        _ = tracker.resumed(epoch: 1, serverAcknowledged: 0, head: 0, now: now)
        tracker.arrived("x", seq: 3, to: 3, now: now, output: &output)
        now = now + .seconds(1)
        tracker.deadlineReached(now: now, output: &output)
        output = []
        tracker.synchronized(epoch: 1, head: 6, oldest: 6, now: now, output: &output)
        let missed = output.compactMap { if case .missed(let range) = $0 { range } else { nil } }
        #expect(missed == [1...2, 4...5])
        #expect(tracker.counts == InboxCounts(gaps: 4, lost: 4))
        // The app must also take the gaps.
        #expect(tracker.taken < 2)
        tracker.taken(seq: 5, now: now, output: &output)
        #expect(tracker.taken == 5)
    }

    @Test func `JSON data of a push is read`() throws {
        struct Order: Decodable, Equatable { var number: Int }
        var push = Push(id: "", title: "", body: "", dataJSON: #"{"number": 7}"#, collapseKey: "")
        #expect(try push.data(as: Order.self) == Order(number: 7))
        for other in [#"{"number": "x"}"#, String(repeating: "[", count: 10_000), ""] {
            push.dataJSON = other
            #expect(throws: DecodingError.self) { try push.data(as: Order.self) }
        }
    }
}
