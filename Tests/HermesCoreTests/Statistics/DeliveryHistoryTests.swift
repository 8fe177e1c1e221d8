// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct DeliveryHistoryTests {
    static let start = Timestamp(rawValue: 1_800_000_000_000)

    static func at(_ seconds: Int) -> Timestamp { start.advanced(by: .seconds(seconds)) }

    static func report(
        _ version: String,
        _ label: String = "wifi",
        within1s: UInt64 = 1,
        lost: UInt64 = 0,
        heartbeat: Duration = .zero
    ) throws -> ClientReport {
        var counts = ReportCounts()
        counts[.received] = within1s
        counts[.within1s] = within1s
        counts[.never] = lost
        return try ClientReport(
            appVersion: version,
            networks: [.init(label: label, counts: counts, heartbeat: heartbeat)]
        )
    }

    private func within1s(_ history: DeliveryHistory, _ period: DeliveryHistory.Period, at seconds: Int) -> [UInt64] {
        DeliveryHistory.versions(of: history.groups(period, now: Self.at(seconds))).map { $0.counts[.within1s] }
    }

    @Test func `reports are summed per version and network, over windows that slide`() throws {
        var history = DeliveryHistory()
        history.add(try Self.report("2.0", within1s: 5), now: Self.start)
        history.add(try Self.report("1.0", "cellular", within1s: 1, lost: 2), now: Self.start)
        history.add(try Self.report("2.0", "cellular", within1s: 7), now: Self.at(7_200))
        let groups = history.groups(.day, now: Self.at(7_200))
        #expect(
            groups.map { "\($0.group.appVersion) \($0.group.network)" } == ["1.0 cellular", "2.0 cellular", "2.0 wifi"]
        )
        #expect(groups.map { $0.counts[.within1s] } == [1, 7, 5])
        #expect(groups.map { $0.counts[.never] } == [2, 0, 0] && groups.map { $0.counts[.reports] } == [1, 1, 1])
        #expect(within1s(history, .day, at: 7_200) == [1, 12])
        #expect(within1s(history, .hour, at: 7_200) == [7])
        // A day after the first two reports, only the third report counts. After 30 days, no report counts.
        #expect(within1s(history, .day, at: 86_400 + 3_600) == [7])
        #expect(within1s(history, .month, at: 2 * 86_400) == [1, 12])
        #expect(within1s(history, .month, at: 31 * 86_400) == [])
    }

    @Test func `a series has a row for each step, of the wanted version and network`() throws {
        var history = DeliveryHistory()
        for step in 0..<3 { history.add(try Self.report("1", within1s: UInt64(step + 1)), now: Self.at(10 * step)) }
        history.add(try Self.report("2", "cellular", within1s: 100), now: Self.at(20))
        func last(_ version: String?, _ network: String?) -> [UInt64] {
            history.series(.hour, appVersion: version, network: network, now: Self.at(20)).rows.suffix(4)
                .map { $0[.within1s] }
        }
        #expect(last(nil, nil) == [0, 1, 2, 103] && last("1", nil) == [0, 1, 2, 3])
        #expect(last(nil, "cellular") == [0, 0, 0, 100] && last("1", "cellular") == [0, 0, 0, 0])
        let hour = history.series(.hour, appVersion: nil, network: nil, now: Self.at(20))
        #expect(hour.rows.count == 360 && hour.from == Self.at(20 - 3_590))
        let month = history.series(.month, appVersion: nil, network: nil, now: Self.at(20))
        #expect(month.rows.count == DeliveryHistory.maxRows && month.rows.last?[.within1s] == 106)
        #expect(month.interval == 1_800_000)
    }

    @Test func `heartbeats are counted by classes of their length`() throws {
        var history = DeliveryHistory()
        for seconds in [0, 1, 30, 31, 60, 120, 240, 600, 601, 1_000_000_000] {
            history.add(try Self.report("1", heartbeat: .seconds(seconds)), now: Self.start)
        }
        let counts = try #require(history.groups(.hour, now: Self.start).first?.counts)
        let classes: [ReportFigure] = [
            .heartbeat30, .heartbeat60, .heartbeat120, .heartbeat300, .heartbeat600, .heartbeatLonger,
        ]
        #expect(classes.map { counts[$0] } == [2, 2, 1, 1, 1, 2] && counts[.reports] == 10)
    }

    @Test func `a clock that is put back loses nothing and adds no rows, unless it was far ahead`() throws {
        var history = DeliveryHistory()
        history.add(try Self.report("1"), now: Self.start)
        history.add(try Self.report("1"), now: Self.at(-1_800))
        #expect(within1s(history, .hour, at: 0) == [2] && history.recent.rows.count == 1)
        #expect(history.series(.hour, appVersion: nil, network: nil, now: Self.at(-1_800)).rows.count == 360)
        history.add(try Self.report("1"), now: Self.at(-40 * 86_400))
        #expect(within1s(history, .month, at: -40 * 86_400) == [1] && history.thin.rows.count == 1)
        history.add(try Self.report("1"), now: Timestamp(rawValue: .min))
        history.add(try Self.report("1"), now: Timestamp(rawValue: .max))
        #expect(history.groups(.hour, now: Timestamp(rawValue: .min)).count <= 1)
        #expect(
            history.series(.month, appVersion: nil, network: nil, now: Timestamp(rawValue: .max)).rows.count == 1_440
        )
    }

    @Test func `of more groups than fit, the one with the fewest reports is counted under the others`() throws {
        var history = DeliveryHistory(maxGroups: 3)
        for _ in 0..<3 { history.add(try Self.report("1"), now: Self.start) }
        history.add(try Self.report("2", within1s: 10), now: Self.start)
        // There is room for one new name every ten seconds.
        history.add(try Self.report("3", within1s: 100), now: Self.at(10))
        history.add(try Self.report("4", within1s: 1_000), now: Self.at(11))
        func sums(_ seconds: Int) -> [String] {
            history.groups(.hour, now: Self.at(seconds)).map { "\($0.group.appVersion) \($0.counts[.within1s])" }
        }
        #expect(sums(11) == ["1 3", "3 100", "other 1010"])
        history.add(try Self.report("4", within1s: 1_000), now: Self.at(20))
        #expect(sums(20) == ["1 3", "4 1000", "other 1110"])
        #expect(
            history.groups == [
                .other, .init(appVersion: "1", network: "wifi"), .init(appVersion: "4", network: "wifi"),
            ]
        )
        // A client that reports the name "other" is counted under the others.
        history.add(try Self.report("other", "other"), now: Self.at(20))
        #expect(sums(20) == ["1 3", "4 1000", "other 1111"])
    }

    @Test func `whatever clients report, the size is bounded, and counts do not overflow`() throws {
        var history = DeliveryHistory()
        var counts = ReportCounts()
        counts[.received] = .max
        for step in 0..<400 {
            let networks = try (0..<ClientReport.maxNetworks).map {
                try ClientReport.Network(label: "\(step)-\($0)" + String(repeating: "x", count: 56), counts: counts)
            }
            let version = "\(step)" + String(repeating: "y", count: 29)
            history.add(try ClientReport(appVersion: version, networks: networks), now: Self.at(10 * step))
        }
        #expect(history.groups.count == DeliveryHistory.maxGroups && history.recent.rows.count == 360)
        #expect(history.bytes.count <= DeliveryHistory.maxBytes)
        let all = history.groups(.month, now: Self.at(4_000))
        #expect(all.count <= DeliveryHistory.maxGroups)
        #expect(all.reduce(0) { $0 + $1.counts[.reports] } == 6_400, "none is lost")
        // 5,000 reports of a million each exceed a count of 32 bits.
        for _ in 0..<5_000 {
            history.add(
                try ClientReport(appVersion: "1", networks: [.init(label: "", counts: counts)]),
                now: Self.at(4_000)
            )
        }
        let received = history.groups(.hour, now: Self.at(4_000)).map { $0.counts[.received] }
        #expect(received.contains(UInt64(UInt32.max)))
        let full = DeliveryHistory.maxBytes
        #expect(full < 10_000_000, "docs/console.md says how much it is")
    }

    @Test func `it is the same after it was written and read`() throws {
        var history = DeliveryHistory()
        for step in 0..<500 {
            history.add(
                try Self.report("\(step % 3)", ["wifi", "cellular", ""][step % 2], within1s: UInt64(step)),
                now: Self.at(10 * step)
            )
        }
        var read = try #require(DeliveryHistory(bytes: history.bytes))
        #expect(read.bytes == history.bytes && read == history)
        history.add(try Self.report("new"), now: Self.at(5_000))
        read.add(try Self.report("new"), now: Self.at(5_000))
        #expect(read == history)
        let empty = DeliveryHistory()
        #expect(DeliveryHistory(bytes: empty.bytes) == empty)
    }

    @Test func `a file with fewer figures is read: those of an older version`() throws {
        var history = DeliveryHistory()
        for version in ["1", "2"] {
            history.add(try Self.report(version, within1s: 5, heartbeat: .seconds(700)), now: Self.at(30))
        }
        // The last figure is cut out. It has 4 bytes for each group, in the single row of each ring.
        let columns = ReportRing.Row.columns
        var bytes = history.bytes
        var place = 6
        for group in history.groups { place += 2 + group.appVersion.utf8.count + group.network.utf8.count }
        for ring in [history.recent, history.thin] {
            let groups = try #require(ring.rows.first).groups.count
            place += 2 + 8 + 1 + groups
            for _ in 0..<groups {
                place += 4 * (columns - 1)
                bytes.removeSubrange(place..<place + 4)
            }
        }
        #expect(place == bytes.count)
        bytes[4] -= 1
        let read = try #require(DeliveryHistory(bytes: bytes))
        #expect(within1s(read, .hour, at: 30) == [5, 5])
        let counts = read.groups(.hour, now: Self.at(30)).map(\.counts)
        #expect(counts.map { $0[.reports] } == [1, 1] && counts.map { $0[.heartbeatLonger] } == [0, 0])
        #expect(history.groups(.hour, now: Self.at(30)).map { $0.counts[.heartbeatLonger] } == [1, 1])
        bytes[4] = 0
        #expect(DeliveryHistory(bytes: bytes) == nil)
        bytes = history.bytes
        bytes[4] += 1
        #expect(DeliveryHistory(bytes: bytes) == nil, "of a newer version")
    }

    @Test func `damaged bytes are refused, and never crash`() throws {
        var history = DeliveryHistory()
        history.add(try Self.report("1"), now: Self.start)
        history.add(try Self.report("2"), now: Self.at(30))
        let bytes = history.bytes
        for length in 0..<bytes.count { #expect(DeliveryHistory(bytes: Array(bytes.prefix(length))) == nil) }
        #expect(DeliveryHistory(bytes: bytes + [0]) == nil)
        #expect(DeliveryHistory(bytes: Array(repeating: 0, count: DeliveryHistory.maxBytes + 1)) == nil)
        for index in bytes.indices {
            for bit in [0x01, 0x80, 0xFF] as [UInt8] {
                var damaged = bytes
                damaged[index] ^= bit
                guard var read = DeliveryHistory(bytes: damaged) else { continue }
                read.add(try Self.report("3"), now: Self.at(60))
                _ = read.groups(.month, now: Self.at(60))
                _ = read.series(.hour, appVersion: nil, network: "wifi", now: Self.at(60))
                _ = read.bytes
            }
        }
    }
}

@Suite struct DeliveryTimesTests {
    @Test func `quantiles lie in the class of their delivery, also at its ends`() throws {
        var times = DeliveryTimes()
        #expect(times.quantile(0.5) == nil && times.count == 0)
        for _ in 0..<99 { times.add(.microseconds(250)) }
        times.add(.seconds(4))
        let half = try #require(times.quantile(0.5))
        #expect(half > 200 && half <= 300)
        #expect(try #require(times.quantile(0.99)) <= 300)
        #expect(try #require(times.quantile(1)) == 5_000_000)
        for time in [Duration.seconds(-5), .zero, .microseconds(100), .seconds(11), .seconds(Int64.max)] {
            times.add(time)
        }
        #expect(times.count == 105 && times.counts.first == 3 && times.counts.last == 2)
        #expect(times.quantile(1) == 10_000_000)
        #expect(DeliveryTimes.bounds == DeliveryTimes.bounds.sorted() && DeliveryTimes.bounds.count == 31)
    }
}
