// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@Suite struct ClientStatisticsTests {
    static let start = Timestamp(rawValue: 1_800_000_000_000)

    static func report(_ version: String, within1s: UInt64, lost: UInt64 = 0) throws -> ClientReport {
        var counts = ReportCounts()
        counts[.received] = within1s
        counts[.within1s] = within1s
        counts[.never] = lost
        return try ClientReport(appVersion: version, networks: [.init(label: "wifi", counts: counts)])
    }

    @Test func `metrics get the names of few versions, whatever clients report`() throws {
        let statistics = ClientStatistics()
        func name(_ version: String, by account: Int) throws -> String {
            let report = try Self.report(version, within1s: 1)
            let reporter = try user(Int32(account + 1))
            return statistics.add(report, of: reporter, learnsHeartbeats: false, now: Self.start)
        }
        for number in 0..<ClientStatistics.maxMetricVersions {
            let account = number / ClientStatistics.maxMetricVersionsPerAccount
            #expect(try name("\(number)", by: account) == "\(number)")
        }
        #expect(try name("more", by: 100) == DeliveryHistory.other && name("3", by: 100) == "3")
        // The last report of a client is also in the history.
        let sums = statistics.versions(.hour, now: Self.start)
        #expect(sums.reduce(0) { $0 + $1.counts[.within1s] } == 66)
    }

    @Test func `an account that invents versions does not take the metrics of others`() throws {
        let statistics = ClientStatistics()
        func name(_ version: String, by account: Int32) throws -> String {
            let report = try Self.report(version, within1s: 1)
            return statistics.add(report, of: try user(account), learnsHeartbeats: false, now: Self.start)
        }
        let names = try (0..<ClientStatistics.maxMetricVersions).map { try name("invented \($0)", by: 1) }
        #expect(names.filter { $0 == DeliveryHistory.other }.count == names.count - 4)
        #expect(try name("2.1", by: 1) == DeliveryHistory.other)
        #expect(try name("2.1", by: 2) == "2.1")
        #expect(try name("2.1", by: 1) == "2.1" && name("invented 0", by: 1) == "invented 0")
    }

    @Test func `a report is checked, and its numbers are believed within reason`() throws {
        var counts = ReportCounts()
        counts[.received] = .max
        let network = try ClientReport.Network(label: "wifi", counts: counts)
        #expect(network.counts[.received] == 1_000_000)
        #expect(throws: HermesError.self) { try ClientReport.Network(label: "a\nb", counts: counts) }
        let long = #expect(throws: HermesError.self) {
            try ClientReport.Network(label: String(repeating: "x", count: 65), counts: counts)
        }
        #expect(long?.code == .tooLarge)
        #expect(throws: HermesError.self) { try ClientReport(appVersion: "1\u{7F}", networks: []) }
        let many = #expect(throws: HermesError.self) {
            try ClientReport(appVersion: "1", networks: Array(repeating: network, count: 17))
        }
        #expect(many?.code == .tooLarge)
        #expect(try ClientReport(appVersion: "1", networks: [network, network]).counts[.received] == 2_000_000)
    }

    @Test func `a network's prior is what three of four clients stand, once enough have told`() throws {
        var priors = HeartbeatPriors()
        for (number, seconds) in [300, 280, 30, 290].enumerated() {
            priors.settled(at: .seconds(seconds), in: "cellular", by: try user(Int32(number + 1)))
        }
        #expect(priors.interval(in: "cellular") == nil)
        // A client that votes again still has only one vote.
        for _ in 0..<70 { priors.settled(at: .seconds(300), in: "cellular", by: try user(1)) }
        #expect(priors.interval(in: "cellular") == nil)
        priors.settled(at: .seconds(310), in: "cellular", by: try user(5))
        #expect(priors.interval(in: "cellular") == .seconds(280))
        #expect(priors.interval(in: "wifi") == nil)
        // Implausible intervals are ignored, and an empty label is not a network.
        for number in 1...10 as ClosedRange<Int32> {
            priors.settled(at: .seconds(100_000), in: "wifi", by: try user(number))
            priors.settled(at: .seconds(1), in: "wifi", by: try user(number))
            priors.settled(at: .seconds(100), in: "", by: try user(number))
        }
        #expect(priors.interval(in: "wifi") == nil && priors.interval(in: "") == nil && priors.count == 1)
        // Only the newest 64 votes count.
        for number in 1...64 as ClosedRange<Int32> {
            priors.settled(at: .seconds(60), in: "cellular", by: try user(number))
        }
        #expect(priors.interval(in: "cellular") == .seconds(60))
    }

    @Test func `an account has one allowance, however often it connects`() throws {
        let statistics = ClientStatistics()
        for _ in 0..<ClientStatistics.reportsPerHour { try statistics.admitReport(of: try user(1), uptime: .zero) }
        #expect(throws: HermesError.self) { try statistics.admitReport(of: try user(1), uptime: .zero) }
        try statistics.admitReport(of: try user(2), uptime: .zero)
        try statistics.admitReport(of: try user(1), uptime: .seconds(60))
    }

    @Test func `of more networks than fit, the one without news for longest is forgotten`() throws {
        var priors = HeartbeatPriors(maxNetworks: 2)
        for label in ["a", "b"] {
            for number in 1...5 as ClosedRange<Int32> {
                priors.settled(at: .seconds(100), in: label, by: try user(number))
            }
        }
        priors.settled(at: .seconds(100), in: "a", by: try user(1))
        priors.settled(at: .seconds(100), in: "c", by: try user(1))
        #expect(priors.count == 2 && priors.interval(in: "a") != nil && priors.interval(in: "b") == nil)
    }
}
