// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesTestKit
import HermesWire
import Metrics
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct FiguresTests {
    /// The sum of a metric's series in the text of `/metrics`.
    private func total(_ metric: String, _ text: String) -> Double {
        text.split(separator: "\n").reduce(0) { sum, line in
            let parts = line.split(separator: " ")
            guard parts.count == 2, parts[0].prefix(while: { $0 != "{" }) == metric else { return sum }
            return sum + (Double(parts[1]) ?? 0)
        }
    }

    /// The beginning of a row.
    private var start: Timestamp { Timestamp(rawValue: SystemTime().now().rawValue / 10_000 * 10_000) }

    private func newest(_ name: String, _ figures: Figures) throws -> Float? {
        let history = figures.history
        let column = try #require(history.names.firstIndex(of: name))
        return history.recent.value(column, number: try #require(history.recent.newest))
    }

    /// Other tests in this process count in the same metrics, so this test uses values that they do not change.
    @Test func `rates and gauges are those of the metrics`() async throws {
        try await withServer(store: .sqlite) { server in
            let assembly = try server.assembly()
            // These figures are separate from the server's own, so that only the test samples them.
            let figures = Figures(
                gateways: ["http"],
                gauges: assembly.gauges,
                directory: server.dataDirectory,
                loops: []
            )
            let start = start
            figures.sample(at: start, uptime: .seconds(1_000_000))
            let before = MetricsRegistry.shared.text()
            Counter(label: "hermes_client_deliveries_total", dimensions: [("app_version", "x"), ("within", "10s")])
                .increment(by: 12_345)
            Counter(label: "hermes_client_deliveries_total", dimensions: [("app_version", "y"), ("within", "1s")])
                .increment(by: 777)
            figures.sample(at: start.advanced(by: .seconds(10)), uptime: .seconds(1_000_010))
            let after = MetricsRegistry.shared.text()
            let grown = total("hermes_client_deliveries_total", after) - total("hermes_client_deliveries_total", before)
            let rates = try ["in_1s", "in_10s", "later", "never"].map { try newest("delivered.\($0)", figures) ?? .nan }
            #expect(abs(Double(rates.reduce(0, +)) * 10 - grown) <= grown * 0.02)
            #expect(rates[0] >= 77 && rates[1] >= 1234)
            let memory = Double(try newest("memory.resident", figures) ?? 0)
            #expect(abs(memory - total("process_resident_memory_bytes", after)) < memory * 0.02)
            #expect(try newest("disk.data", figures) ?? 0 > 4096)
            #expect(try newest("connections.http", figures) != nil)
        }
    }

    /// The values may be higher, because other tests in this process count in the same metrics.
    @Test func `messages, deliveries and their time are counted`() async throws {
        try await withServer(store: .sqlite) { server in
            let assembly = try server.assembly()
            let figures = Figures(gateways: [], gauges: assembly.gauges, directory: nil, loops: [])
            let start = start
            figures.sample(at: start, uptime: .seconds(1_000_000))
            let metrics = [
                "hermes_messages_received_total", "hermes_messages_sent_total", "hermes_deliveries_total",
                "hermes_delivery_seconds_count",
            ]
            let before = MetricsRegistry.shared.text()
            let address = ServerAddress(port: server.port("delimited"))
            let ann = try HermesClient(.init(server: address, device: Hermes.DeviceDescription(id: "a")))
            let bob = try HermesClient(.init(server: address, device: Hermes.DeviceDescription(id: "b")))
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-ann"))
            let session = try await bob.logIn(.register(nickName: "bob", password: "secret-bob"))
            for _ in 0..<3 { _ = try await ann.send("hello", to: .user(session.uid)).receipt() }
            // The event loops report their counts twice a second.
            while !metrics.allSatisfy({ metric in
                assembly.gauges.read()
                return total(metric, MetricsRegistry.shared.text()) >= total(metric, before) + 3
            }) {
                try Task.checkCancellation()
                try await Task.sleep(for: .milliseconds(20))
            }
            let times = assembly.gauges.deliveryTimes
            #expect(times.count == 3)
            figures.sample(at: start.advanced(by: .seconds(10)), uptime: .seconds(1_000_010))
            for name in ["in", "out", "delivered"] { #expect(try newest("messages.\(name)", figures) ?? 0 >= 0.3) }
            let half = try #require(try newest("latency.p50_ms", figures))
            let most = try #require(try newest("latency.p99_ms", figures))
            #expect(half > 0 && half <= most)
            // Without further deliveries, there is no delivery time.
            figures.sample(at: start.advanced(by: .seconds(20)), uptime: .seconds(1_000_020))
            #expect(try newest("latency.p50_ms", figures) == nil)
            await ann.close()
            await bob.close()
        }
    }

    @Test func `whatever the metrics count as dropped is in a figure`() async throws {
        try await withServer(store: .sqlite) { server in
            let figures = try #require(try server.assembly().figures)
            let counters: [(name: String, labels: String)] = figures.figures.flatMap { figure in
                if case .rate(let counters) = figure.source { return counters }
                return []
            }
            let dropped = MetricsRegistry.shared.snapshot()
                .filter { $0.key.hasPrefix("hermes_") && $0.key.hasSuffix("_dropped_total") }
            #expect(dropped["hermes_mqtt_messages_dropped_total"]?.count ?? 0 >= 5)
            for (name, series) in dropped {
                for labels in series.keys {
                    let isCounted = counters.contains {
                        $0.name == name && ($0.labels.isEmpty || labels.contains($0.labels))
                    }
                    #expect(isCounted, "\(name){\(labels)}")
                }
            }
        }
    }

    @Test func `figures outlive a restart`() async throws {
        let clock = ManualClock(now: start)
        try await withServer(store: .sqlite, time: clock) { server in
            let time = clock.now()
            try #require(try server.assembly().figures).sample(at: time, uptime: .seconds(1_000_000))
            // The next run writes its own values to a later row.
            clock.advance(by: .seconds(60))
            try await server.restart()
            let history = try #require(try server.assembly().figures).history
            let column = try #require(history.names.firstIndex(of: "memory.resident"))
            #expect(history.recent.value(column, number: history.recent.number(at: time)) ?? 0 > 1_000_000)
        }
    }

    @Test func `a clock that is ahead for a moment moves no row`() async throws {
        let clock = ManualClock(now: start)
        try await withServer(time: clock) { server in
            let assembly = try server.assembly()
            // These figures are separate from the server's own, so that only the test samples them.
            let figures = Figures(gateways: [], gauges: assembly.gauges, directory: nil, loops: [])
            let service = FiguresService(figures: figures, time: assembly.messenger.time, logger: assembly.logger)
            let row = service.sample(after: nil)
            #expect(row == clock.now().rawValue / FigureHistory.interval)
            clock.jump(by: .seconds(20 * 86_400))
            #expect(service.sample(after: row) == row)
            clock.jump(by: .seconds(-20 * 86_400))
            #expect(service.sample(after: row) == row && figures.history.recent.newest == row)
            clock.advance(by: .seconds(10))
            #expect(service.sample(after: row) == row + 1)
            let history = figures.history
            let column = try #require(history.names.firstIndex(of: "memory.resident"))
            for number in [row, row + 1] { #expect(history.recent.value(column, number: number) ?? 0 > 1_000_000) }
        }
    }

    #if Pages
    @Test func `the console shows an hour, what is newer, and a month`() async throws {
        let clock = ManualClock(now: start)
        try await withServer(store: .sqlite, time: clock) { server in
            let figures = try #require(try server.assembly().figures)
            let start = clock.now()
            // While the clock is stopped, the server adds no further values.
            while figures.history.recent.newest == nil {
                try Task.checkCancellation()
                await Task.yield()
            }
            for step in 0..<5 { figures.sample(at: start.advanced(by: .seconds(10 * step)), uptime: .seconds(step)) }
            let viewer = try await ConsoleProbe(server, .viewer)
            func get(_ query: String) async throws -> JSON {
                let answer = try await viewer.send("GET", "/figures\(query)")
                #expect(answer.status == 200)
                return try JSONParser.parse(Array(answer.text.utf8), maxValues: .max)
            }
            func values(_ document: JSON, _ kind: String = "figures") -> [JSON]? {
                if case .array(let values) = document[kind]?["memory.resident"] { values } else { nil }
            }
            let hour = try await get("")
            #expect(values(hour)?.count == 360 && values(hour)?.last != .null)
            #expect(hour["from_ms"]?.integer == start.rawValue + 40_000 - 359 * 10_000)
            let newer = try await get("?figure=memory.resident&after_ms=\(start.rawValue + 20_000)")
            #expect(values(newer)?.count == 2 && newer["figures"]?["disk.data"] == nil)
            #expect(values(try await get("?after_ms=\(Int64.max)"))?.isEmpty == true)
            let month = try await get("?span=month&figure=memory.resident")
            #expect(values(month)?.count == 1_440 && values(month, "maxima")?.last != .null)
            #expect(try await viewer.send("GET", "/figures?span=year").status == 400)
        }
    }
    #endif
}
