// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesServer
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct BudgetMetricsTests {
    /// The values of one budget.
    private struct Budget: Equatable {
        var used: Int?
        var limit: Int?
        var refused: Int?
    }

    private func budget(_ name: String, of server: TestServer) async throws -> Budget {
        let lines = try await HTTPProbe.get("/metrics", port: server.port("http")).text.split(separator: "\n")
        func value(_ metric: String) -> Int? {
            let beginning = "\(metric){budget=\"\(name)\"} "
            return lines.first { $0.hasPrefix(beginning) }.flatMap { Int($0.dropFirst(beginning.count)) }
        }
        return Budget(
            used: value("hermes_budget_used"),
            limit: value("hermes_budget_limit"),
            refused: value("hermes_budget_refused_total")
        )
    }

    /// Waits until the values are as expected, because the server reads them only periodically. After 20 s, returns the
    /// values as they are.
    private func budget(
        _ name: String,
        of server: TestServer,
        when areRight: (Budget) -> Bool
    ) async throws -> Budget {
        let deadline = ContinuousClock.now + .seconds(20)
        var now = try await budget(name, of: server)
        while !areRight(now), ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
            now = try await budget(name, of: server)
        }
        return now
    }

    @Test func `what MQTT clients leave is shown with its limit, and what was refused is counted`() async throws {
        func configure(_ settings: inout ServerSettings) {
            settings.gateways.broker.keptSessions = SharedLimit(2)
            settings.gateways.broker.keptSubscriptions = SharedLimit(6)
            settings.gateways.broker.keptMessages = SharedLimit(2)
            settings.gateways.broker.retainedMessages = SharedLimit(2)
        }
        try await withServer(configure: configure) { server in
            let names = ["mqtt_sessions", "mqtt_subscriptions", "mqtt_queued_messages", "mqtt_retained_messages"]
            var before: [String: Int] = [:]
            for name in names {
                let first = try await budget(name, of: server) { $0.used == 0 }
                #expect(first.used == 0, "\(name)")
                #expect(first.limit == (name == "mqtt_subscriptions" ? 6 : 2), "\(name)")
                // Other servers in this process count with the same counters.
                before[name] = first.refused ?? 0
            }
            // Clients without an account have half of the limit, and no client has more than the rest.
            let kept = try server.mqtt(as: nil, id: "kept", keeps: true)
            try await kept.connect()
            try await kept.subscribe(to: "a", qos: .atLeastOnce)
            try await kept.subscribe(to: "b", qos: .atLeastOnce)
            let refusal = await #expect(throws: HermesClientError.self) { try await kept.subscribe(to: "c") }
            #expect(refusal != nil)
            await kept.close()
            await #expect(throws: HermesClientError.self) {
                try await server.mqtt(as: nil, id: "second", keeps: true).connect()
            }
            let pen = try server.mqtt(as: nil, id: "pen")
            try await pen.connect()
            for topic in ["a", "b"] {
                _ = try? await pen.publish("1", to: topic, qos: .atLeastOnce)
                _ = try? await pen.publish("1", to: "r/\(topic)", qos: .atLeastOnce, retain: true)
            }
            await pen.close()
            for (name, used) in zip(names, [1, 2, 1, 1]) {
                let now = try await budget(name, of: server) { $0.used == used }
                #expect(now.used == used, "\(name)")
                #expect(now.refused ?? 0 > before[name] ?? 0, "\(name)")
            }
            let topics = try await budget("topics", of: server) { $0.limit ?? 0 > 0 }
            #expect(topics.used == 0 && topics.limit ?? 0 >= 64 << 20 && topics.refused != nil)
            for name in ["mqtt_queued_bytes", "mqtt_retained_bytes"] {
                let now = try await budget(name, of: server) { $0.used ?? 0 > 0 }
                #expect(now.used ?? 0 > 0 && now.used ?? 0 < now.limit ?? 0, "\(name)")
                #expect(now.refused == nil, "\(name)")
            }
        }
    }

    @Test func `the memory of connections is shown`() async throws {
        try await withServer { server in
            let client = try server.mqtt(as: nil, id: "client")
            try await client.connect()
            let filter = String(repeating: "x", count: 60_000)
            try await client.subscribe(to: filter)
            let memory = try await budget("memory", of: server) { $0.used ?? 0 >= filter.utf8.count }
            #expect(memory.used ?? 0 >= filter.utf8.count)
            #expect(memory.limit ?? 0 > memory.used ?? 0)
            await client.close()
        }
    }
}
