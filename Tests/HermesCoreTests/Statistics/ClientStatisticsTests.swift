// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct ClientStatisticsTests {
    static let start = Timestamp(rawValue: 1_800_000_000_000)

    static func report(_ version: String, within1s: UInt64, lost: UInt64 = 0) throws -> ClientReport {
        var counts = DeliveryCounts()
        counts.received = within1s
        counts.within1s = within1s
        counts.lost = lost
        return try ClientReport(appVersion: version, networks: [.init(label: "wifi", counts: counts)])
    }

    @Test func `metrics get the names of few versions, whatever clients report`() throws {
        let statistics = ClientStatistics()
        func name(_ version: String) throws -> String {
            statistics.add(try Self.report(version, within1s: 1), learnsHeartbeats: false, now: Self.start)
        }
        for number in 0..<ClientStatistics.maxMetricVersions { #expect(try name("\(number)") == "\(number)") }
        #expect(try name("more") == DeliveryHistory.other && name("3") == "3")
        // What a client reports last is in the history, too.
        let sums = statistics.versions(.hour, now: Self.start)
        #expect(sums.reduce(0) { $0 + $1.counts[.within1s] } == 66)
    }

    @Test func `a report is checked, and its numbers are believed within reason`() throws {
        var counts = DeliveryCounts()
        counts.received = .max
        let network = try ClientReport.Network(label: "wifi", counts: counts)
        #expect(network.counts.received == 1_000_000)
        #expect(throws: HermesError.self) { try ClientReport.Network(label: "a\nb", counts: counts) }
        #expect(throws: HermesError.self) {
            try ClientReport.Network(label: String(repeating: "x", count: 65), counts: counts)
        }
        #expect(throws: HermesError.self) { try ClientReport(appVersion: "1\u{7F}", networks: []) }
        #expect(throws: HermesError.self) {
            try ClientReport(appVersion: "1", networks: Array(repeating: network, count: 17))
        }
        #expect(try ClientReport(appVersion: "1", networks: [network, network]).counts.received == 2_000_000)
    }

    @Test func `a network's prior is what three of four clients stand, once enough have told`() {
        var priors = HeartbeatPriors()
        for seconds in [300, 280, 30, 290] { priors.settled(at: .seconds(seconds), in: "cellular") }
        #expect(priors.interval(in: "cellular") == nil)
        priors.settled(at: .seconds(310), in: "cellular")
        #expect(priors.interval(in: "cellular") == .seconds(280))
        #expect(priors.interval(in: "wifi") == nil)
        // Nonsense is not believed, and no label is no network.
        for _ in 0..<10 {
            priors.settled(at: .seconds(100_000), in: "wifi")
            priors.settled(at: .seconds(1), in: "wifi")
            priors.settled(at: .seconds(100), in: "")
        }
        #expect(priors.interval(in: "wifi") == nil && priors.interval(in: "") == nil && priors.count == 1)
        // What is new counts: the last 64.
        for _ in 0..<64 { priors.settled(at: .seconds(60), in: "cellular") }
        #expect(priors.interval(in: "cellular") == .seconds(60))
    }

    @Test func `of more networks than fit, the one without news for longest is forgotten`() {
        var priors = HeartbeatPriors(maxNetworks: 2)
        for _ in 0..<5 { priors.settled(at: .seconds(100), in: "a") }
        for _ in 0..<5 { priors.settled(at: .seconds(100), in: "b") }
        priors.settled(at: .seconds(100), in: "a")
        priors.settled(at: .seconds(100), in: "c")
        #expect(priors.count == 2 && priors.interval(in: "a") != nil && priors.interval(in: "b") == nil)
    }
}
