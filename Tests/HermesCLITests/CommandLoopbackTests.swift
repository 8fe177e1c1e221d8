// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@testable import HermesCLI

/// The commands as a shell starts them, against a whole server in this process.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct CommandLoopbackTests {
    private static func withPasswordFile(_ body: (String) async throws -> Void) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "hermes-\(UInt64.random(in: 0 ... .max))"
        )
        try Data("secret-1\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await body(file.path)
    }

    private static func run(_ arguments: [String]) async throws {
        guard var command = try HermesCommand.parseAsRoot(arguments) as? any AsyncParsableCommand else {
            Issue.record("\(arguments) is no command")
            return
        }
        try await command.run()
    }

    @Test func `send sends, once per client id`() async throws {
        try await withServer { server in
            try await Self.withPasswordFile { file in
                let port = server.port("delimited")
                var configuration = HermesClient.Configuration(
                    server: ServerAddress(port: port),
                    device: DeviceDescription(id: "d")
                )
                configuration.reconnect = .never
                let bob = try HermesClient(configuration)
                _ = try await bob.logIn(.register(nickName: "bob", password: "secret-b"))
                let arguments = [
                    "send", "--from", "ann", "--to", "bob", "--port", "\(port)", "--password-file", file,
                    "--no-cache", "--device", "test", "--client-id", "once",
                ]
                try await Self.run(arguments + ["--register", "hello"])
                try await Self.run(arguments + ["hello"])
                await #expect(throws: ExitCode.self) { try await Self.run(arguments + ["other"]) }
                try await Self.run(arguments.dropLast(2) + ["bye"])
                var texts: [String] = []
                for await event in bob.events {
                    guard let message = event.message else { continue }
                    texts.append(message.text ?? "")
                    if texts.count == 2 { break }
                }
                #expect(texts == ["hello", "bye"])
                await bob.close()
            }
        }
    }

    @Test func `failures have exit codes`() async throws {
        let port = try await withServer { server in
            try await Self.withPasswordFile { file in
                let login = [
                    "--port", "\(server.port("delimited"))", "--password-file", file, "--no-cache", "--device", "t",
                ]
                await #expect(throws: ExitCode(77)) {
                    try await Self.run(["send", "--from", "ann", "--to", "bob", "x"] + login)
                }
                await #expect(throws: ExitCode.failure) {
                    try await Self.run(["send", "--from", "ann", "--to", "nobody", "x", "--register"] + login)
                }
            }
            return server.port("qsiop")
        }
        // The server is gone.
        await #expect(throws: ExitCode(69)) { try await Self.run(["qsiop", "ping", "--port", "\(port)"]) }
    }

    @Test func `a server that says nothing ends a ping after the time that was asked for`() async throws {
        #expect(try QSIOPPing.parse([]).wait == 5)
        #expect(throws: (any Error).self) { try QSIOPPing.parse(["--wait", "0"]) }
        let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(silent.localAddress?.port)
        let began = ContinuousClock.now
        await #expect(throws: ExitCode.self) {
            try await Self.run(["qsiop", "ping", "--port", "\(port)", "--wait", "0.2"])
        }
        // Less than the fixed time of before.
        #expect(ContinuousClock.now - began < .seconds(14))
        try await silent.close()
    }

    @Test func `room, qsiop and the benchmarks run`() async throws {
        try await withServer { server in
            let (room, chat, impb) = (server.port("liveroom"), server.port("delimited"), server.port("impb"))
            try await Self.run(["room", "lobby", "--name", "ann", "--gift", "rose:2", "--port", "\(room)"])
            try await Self.run(["qsiop", "ping", "--port", "\(server.port("qsiop"))"])
            let short = ["--seconds", "0.3", "--warmup", "0.1", "--json"]
            try await Self.run(["bench", "room", "--viewers", "20", "--port", "\(room)"] + short)
            try await Self.run(["bench", "delimited", "--pairs", "2", "--port", "\(chat)"] + short)
            let registration = ["--registration-port", "\(chat)"]
            try await Self.run(["bench", "impb", "--pairs", "2", "--port", "\(impb)"] + registration + short)
            let listeners = [
                "delimited": "delimited", "websocket": "http", "impb": "impb", "mqtt": "mqtt", "qsiop": "qsiop",
                "liveroom": "liveroom",
            ]
            for kind in HoldBench.Kind.allCases {
                let port = server.port(try #require(listeners[kind.rawValue]))
                let hold = ["bench", "hold", "--protocol", kind.rawValue, "--connections", "2", "--port", "\(port)"]
                try await Self.run(hold + ["--heartbeat", "0.1"] + registration + short)
            }
            try await Self.run(
                ["bench", "idle", "--connections", "10", "--heartbeat", "0.1", "--port", "\(chat)"] + short
            )
        }
    }

    @Test func `pub, sub and bench mqtt run`() async throws {
        try await withServer { server in
            let port = ["-h", "127.0.0.1", "-p", "\(server.port("mqtt"))"]
            try await Self.run(["pub", "-t", "a/b", "-m", "kept", "-r", "-q", "2"] + port)
            try await Self.run(["sub", "-t", "a/+", "-C", "1", "-q", "1", "-F", "%j"] + port)
            try await Self.run(["pub", "-t", "a/b", "-n", "-r", "-q", "1", "-V", "311"] + port)
            await #expect(throws: ExitCode(27)) {
                try await Self.run(["sub", "-t", "a/#", "-W", "0.2", "--quiet"] + port)
            }
            try await Self.run(["sub", "-i", "kept", "-c", "-t", "a/b", "-q", "2", "-E"] + port)
            try await Self.run(["pub", "-t", "a/b", "-m", "later", "-q", "2"] + port)
            try await Self.run(["sub", "-i", "kept", "-c", "-t", "a/b", "-q", "2", "-C", "1", "-v"] + port)
            let bench = ["--seconds", "0.3", "--warmup", "0.1", "--json", "--port", "\(server.port("mqtt"))"]
            try await Self.run(["bench", "mqtt", "fanout", "-S", "10"] + bench)
            try await Self.run(["bench", "mqtt", "pair", "-P", "3", "-q", "2", "-V", "5"] + bench)
            try await Self.run(["bench", "mqtt", "fanin", "-P", "3", "-q", "1", "-r", "500"] + bench)
            try await Self.run(["bench", "mqtt", "conn", "-C", "10", "-k", "1"] + bench)
            try await Self.run(["bench", "mqtt", "churn", "-C", "4"] + bench)
            try await Self.run(["bench", "mqtt", "offline", "-S", "2", "-P", "2", "-M", "50", "-V", "5"] + bench)
        }
    }

    @Test(arguments: [
        ["chat"], ["chat", "ann", "--count", "0"], ["chat", "ann", "--port", "70000"], ["send", "x"],
        ["room", "no spaces"], ["room", "lobby", "--watch", "--gift", "x"], ["qsiop", "report"],
        ["bench", "room", "--viewers", "0"], ["bench", "room", "--tls"],
        ["bench", "mqtt"], ["bench", "mqtt", "star"], ["bench", "mqtt", "offline", "-q", "0"],
        ["bench", "mqtt", "pair", "-w", "0"], ["bench", "idle", "--protocol", "smtp"],
        ["chat", "ann", "--device", "with space"], ["bench", "room", "--pid", "2147483647"],
    ])
    func `nonsense is refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try HermesCommand.parseAsRoot(arguments) }
    }
}
