// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import Logging
import Testing

@testable import HermesServer

/// The clients' reports about deliveries, in the HTTP API, the console and the control socket.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DeliveryStatisticsTests {
    private func report(_ version: String, _ networks: [(label: String, received: UInt64)]) throws -> ClientReport {
        try ClientReport(
            appVersion: version,
            networks: networks.map { label, received in
                var counts = ReportCounts()
                counts[.received] = received
                counts[.never] = 1
                counts[.reset] = 2
                return try ClientReport.Network(label: label, counts: counts, heartbeat: .seconds(240))
            }
        )
    }

    private func add(_ reports: ClientReport..., to server: TestServer) throws {
        let messenger = try server.messenger()
        for report in reports {
            let user = try #require(UserID(1 as Int32))
            _ = messenger.clientStatistics.add(report, of: user, learnsHeartbeats: false, now: messenger.time.now())
        }
    }

    @Test func `they are read by version, by network, and over time`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let path = "/v1/stats/delivery"
            let before = try await client.send("GET", path).body
            #expect(before["versions"]?.array == [] && before["groups"]?.array == [])
            try add(report("1.2", [("wifi", 7), ("", 3)]), report("2.0", [("wifi", 5)]), to: server)
            for (period, seconds) in [("", 86_400), ("?period=hour", 3_600), ("?period=month", 2_592_000)] {
                let body = try await client.send("GET", path + period).body
                #expect(body["window_seconds"]?.integer == Int64(seconds))
                let version = body["versions"]?.array?.first
                #expect(version?["app_version"]?.string == "1.2" && version?["received"]?.integer == 10)
                #expect(version?["never"]?.integer == 2 && version?["ended_reset"]?.integer == 4)
                #expect(version?["heartbeat_300s"]?.integer == 2 && version?["heartbeat_120s"]?.integer == 0)
                let groups = body["groups"]?.array?.map {
                    "\($0["app_version"]?.string ?? "") \($0["network"]?.string ?? "") \($0["received"]?.integer ?? 0)"
                }
                #expect(groups == ["1.2  3", "1.2 wifi 7", "2.0 wifi 5"])
            }
            #expect(try await client.send("GET", path + "?period=year").status == 400)
            func received(_ query: String) async throws -> (steps: Int, sum: Int64) {
                let body = try await client.send("GET", "\(path)/series?period=hour\(query)").body
                #expect(body["interval_ms"]?.integer == 10_000)
                let steps = body["figures"]?["received"]?.array ?? []
                return (steps.count, steps.reduce(0) { $0 + ($1.integer ?? 0) })
            }
            #expect(try await received("") == (360, 15))
            #expect(try await received("&app_version=1.2") == (360, 10))
            #expect(try await received("&network=wifi") == (360, 12))
            #expect(try await received("&network=&app_version=1.2") == (360, 3))
            #expect(try await received("&network=other") == (360, 0))
            let long = String(repeating: "x", count: 65)
            #expect(try await client.send("GET", "\(path)/series?network=\(long)").status == 400)
            let day = try await client.send("GET", "\(path)/series").body
            #expect(day["interval_ms"]?.integer == 1_800_000 && day["figures"]?["later"]?.array?.count == 48)
        }
    }

    @Test func `they outlive a restart, and are shown over the control socket and in the console`() async throws {
        try await withServer(store: .sqlite) { server in
            try add(report("1.2", [("wifi", 7)]), to: server)
            try await server.restart()
            try add(report("1.2", [("wifi", 5)]), to: server)
            let request = ControlRequest.deliveries(period: "month")
            guard case .deliveries(let all) = try await ControlClient.ask(request, directory: server.dataDirectory)
            else {
                Issue.record("no deliveries")
                return
            }
            #expect(all.map(\.appVersion) == ["1.2"] && all.map(\.network) == ["wifi"])
            #expect(all.first?.counts["received"] == 12 && all.first?.counts["reports"] == 2)
            #if Pages
            let viewer = try await ConsoleProbe(server, .viewer)
            for path in ["/stats/delivery?period=hour", "/stats/delivery/series?period=month&network=wifi"] {
                let answer = try await viewer.send("GET", path)
                #expect(answer.status == 200 && answer.text.contains("\"received\":"))
            }
            #endif
        }
    }

    @Test func `a damaged file costs what was kept, and nothing else`() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "h-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: ClientStatisticsService.fileName)
        let now = SystemTime().now()
        var history = DeliveryHistory()
        history.add(try report("1.2", [("wifi", 7)]), now: now)
        for (bytes, isRead) in [(history.bytes, true), (Array("HDH\u{1}nonsense".utf8), false), ([], false)] {
            try Data(bytes).write(to: file)
            let statistics = ClientStatistics()
            _ = ClientStatisticsService(statistics, directory: directory.path, logger: Logger(label: "test"))
            #expect(statistics.history.groups(.hour, now: now).isEmpty != isRead)
        }
    }
}
