// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesTestKit
import Testing

@testable import HermesBench

/// Runs the benchmarks with the arguments that a shell would pass. A benchmark runs against a complete server in this
/// process, or without a server.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct BenchLoopbackTests {
    private static let short = ["--seconds", "0.3", "--warmup", "0.1", "--json"]

    private static func run(_ arguments: [String]) async throws {
        var command = try BenchCommand.parseAsRoot(arguments)
        if var command = command as? any AsyncParsableCommand {
            try await command.run()
        } else {
            try command.run()
        }
    }

    @Test
    func `rooms, messages and idle connections`() async throws {
        try await withServer { server in
            let (room, chat, impb) = (server.port("liveroom"), server.port("delimited"), server.port("impb"))
            try await Self.run(["room", "--viewers", "20", "--port", "\(room)"] + Self.short)
            try await Self.run(["delimited", "--pairs", "2", "--port", "\(chat)"] + Self.short)
            let registration = ["--registration-port", "\(chat)"]
            try await Self.run(["impb", "--pairs", "2", "--port", "\(impb)"] + registration + Self.short)
            let listeners = [
                "delimited": "delimited", "websocket": "http", "impb": "impb", "mqtt": "mqtt", "qsiop": "qsiop",
                "liveroom": "liveroom",
            ]
            for kind in HoldBench.Kind.allCases {
                let port = server.port(try #require(listeners[kind.rawValue]))
                let hold = ["hold", "--protocol", kind.rawValue, "--connections", "2", "--port", "\(port)"]
                try await Self.run(hold + ["--heartbeat", "0.1"] + registration + Self.short)
            }
            let idle = ["idle", "--connections", "10", "--heartbeat", "0.1", "--port", "\(chat)"]
            try await Self.run(idle + Self.short)
        }
    }

    @Test
    func `every shape of MQTT`() async throws {
        try await withServer { server in
            let options = Self.short + ["--port", "\(server.port("mqtt"))"]
            try await Self.run(["mqtt", "fanout", "-S", "10"] + options)
            try await Self.run(["mqtt", "pair", "-P", "3", "-q", "2", "-V", "5"] + options)
            try await Self.run(["mqtt", "fanin", "-P", "3", "-q", "1", "-r", "500"] + options)
            try await Self.run(["mqtt", "conn", "-C", "10", "-k", "1"] + options)
            try await Self.run(["mqtt", "churn", "-C", "4"] + options)
            try await Self.run(["mqtt", "offline", "-S", "2", "-P", "2", "-M", "50", "-V", "5"] + options)
        }
    }

    @Test
    func `what needs no server`() async throws {
        try await Self.run(["store", "--users", "10", "--batches", "20", "--batch-size", "16"])
        try await Self.run(["sessions", "--sessions", "3", "--messages", "20", "--retained", "50"])
        try await Self.run(["logins", "--accounts", "10", "--logins", "50", "--at-once", "4"])
        try await Self.run(["topics", "--subscriptions", "1000", "--operations", "1000", "--loops", "2"])
    }

    @Test(arguments: [
        ["room", "--viewers", "0"], ["room", "--tls"], ["room", "--port", "70000"], ["mqtt"], ["mqtt", "star"],
        ["mqtt", "offline", "-q", "0"], ["mqtt", "pair", "-w", "0"], ["idle", "--protocol", "smtp"],
        ["room", "--pid", "2147483647"], ["store", "--users", "1"],
    ])
    func `nonsense is refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try BenchCommand.parseAsRoot(arguments) }
    }
}
