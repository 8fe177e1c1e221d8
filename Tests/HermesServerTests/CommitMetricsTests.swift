// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesServer
import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct CommitMetricsTests {
    /// Returns the value of a metric; 0 if there is none.
    private func value(_ metric: String, of server: TestServer) async throws -> Double {
        let lines = try await HTTPProbe.get("/metrics", port: server.port("http")).text.split(separator: "\n")
        let beginning = "\(metric) "
        return lines.first { $0.hasPrefix(beginning) }.flatMap { Double($0.dropFirst(beginning.count)) } ?? 0
    }

    /// Waits until a metric has the expected value. Its text is written once a second.
    private func wait(
        for metric: String,
        of server: TestServer,
        until isRight: (Double) -> Bool
    ) async throws -> Bool {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            if isRight(try await value(metric, of: server)) { return true }
            try await Task.sleep(for: .milliseconds(20))
        }
        return false
    }

    /// Waits until `/readyz` gives the expected answer. Its result is reused for a second.
    private func readiness(
        of server: TestServer,
        until isRight: ((status: Int, text: String)) -> Bool
    ) async throws -> (status: Int, text: String) {
        let deadline = ContinuousClock.now + .seconds(20)
        var now = try await HTTPProbe.get("/readyz", port: server.port("http"))
        while !isRight(now), ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
            now = try await HTTPProbe.get("/readyz", port: server.port("http"))
        }
        return now
    }

    @Test func `commits of MQTT count, and while they fail the server is not ready`() async throws {
        try await withServer { server in
            let store = try #require(try server.messenger().messageStore as? MemoryStore)
            let pen = try server.mqtt(as: nil, id: "pen")
            try await pen.connect()
            let good = "hermes_commits_total{kind=\"sessions\"}"
            let operations = "hermes_committed_operations_total{kind=\"sessions\"}"
            let failed = "hermes_commits_failed_total{kind=\"sessions\"}"
            // Other servers in this process count with the same counters.
            let before = (
                good: try await value(good, of: server), operations: try await value(operations, of: server),
                failed: try await value(failed, of: server)
            )
            for number in 1...3 {
                _ = try await pen.publish("\(number)", to: "r", qos: .atLeastOnce, retain: true)
            }
            #expect(try await wait(for: good, of: server) { $0 > before.good })
            #expect(try await wait(for: operations, of: server) { $0 >= before.operations + 3 })

            try store.run { $0.capacityBytes = 0 }
            await #expect(throws: HermesClientError.self) {
                try await pen.publish("lost", to: "r", qos: .atLeastOnce, retain: true)
            }
            #expect(try await wait(for: failed, of: server) { $0 > before.failed })
            let full = try await readiness(of: server) { $0.status == 503 }
            #expect(full.status == 503)
            #expect(full.text.hasPrefix("store: commits fail: The memory store is full."), "\(full.text)")

            try store.run { $0.capacityBytes = nil }
            let other = try server.mqtt(as: nil, id: "other")
            try await other.connect()
            _ = try await other.publish("kept", to: "r", qos: .atLeastOnce, retain: true)
            let ready = try await readiness(of: server) { $0.status == 200 }
            #expect(ready == (200, "ready\n"))
            await other.close()
            await pen.close()
        }
    }

    @Test func `the free bytes of the disk are shown, and counters exist before they count`() async throws {
        try await withServer(store: .sqlite) { server in
            #expect(try await wait(for: "hermes_store_free_bytes", of: server) { $0 > 0 })
            let text = try await HTTPProbe.get("/metrics", port: server.port("http")).text
            for name in [
                "hermes_store_damaged_rows_total ", "hermes_client_received_total ", "hermes_client_lost_total ",
                "hermes_client_connection_ends_total{cause=\"reset\"} ",
                "hermes_client_deliveries_total{app_version=\"other\",within=\"never\"} ",
                "hermes_commits_failed_total{kind=\"inbox\"} ",
            ] { #expect(text.contains("\n\(name)"), "\(name)") }
        }
    }
}
