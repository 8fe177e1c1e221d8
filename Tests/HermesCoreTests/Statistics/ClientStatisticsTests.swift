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

    @Test func `reports are summed per version, over a window of a day`() throws {
        var statistics = DeliveryStatistics()
        statistics.add(try Self.report("2.0", within1s: 5), now: Self.start)
        statistics.add(try Self.report("1.0", within1s: 1, lost: 2), now: Self.start)
        statistics.add(try Self.report("2.0", within1s: 7), now: Self.start.advanced(by: .seconds(7200)))
        let all = statistics.versions(now: Self.start.advanced(by: .seconds(7200)))
        #expect(all.map(\.appVersion) == ["1.0", "2.0"])
        #expect(all.map(\.counts.within1s) == [1, 12])
        #expect(all.map(\.counts.lost) == [2, 0])
        #expect(all.map(\.reports) == [1, 2])
        // A day after the first two only the third counts, and later nothing.
        let nextDay = Self.start.advanced(by: .seconds(86_400 + 3600))
        #expect(statistics.versions(now: nextDay).map(\.counts.within1s) == [7])
        #expect(statistics.versions(now: Self.start.advanced(by: .seconds(2 * 86_400))).isEmpty)
    }

    @Test func `versions beyond the bound are counted together, until there is room`() throws {
        var statistics = DeliveryStatistics(maxVersions: 2)
        #expect(statistics.add(try Self.report("1", within1s: 1), now: Self.start) == "1")
        #expect(statistics.add(try Self.report("2", within1s: 1), now: Self.start) == "2")
        #expect(statistics.add(try Self.report("3", within1s: 1), now: Self.start) == DeliveryStatistics.other)
        #expect(statistics.add(try Self.report("4", within1s: 1), now: Self.start) == DeliveryStatistics.other)
        #expect(statistics.add(try Self.report("1", within1s: 1), now: Self.start) == "1")
        #expect(statistics.versions(now: Self.start).map(\.counts.within1s) == [2, 1, 2])
        let later = Self.start.advanced(by: .seconds(2 * 86_400))
        #expect(statistics.add(try Self.report("4", within1s: 1), now: later) == "4")
    }

    @Test func `a clock that is put back loses nothing and adds no slots`() throws {
        var statistics = DeliveryStatistics()
        statistics.add(try Self.report("1", within1s: 1), now: Self.start)
        statistics.add(try Self.report("1", within1s: 1), now: Self.start.advanced(by: .seconds(-7200)))
        #expect(statistics.versions(now: Self.start).map(\.counts.within1s) == [2])
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
