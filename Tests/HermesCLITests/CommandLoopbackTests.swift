// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesTestKit
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesCLI

/// Runs the commands with the arguments of a shell, against a whole server in this process.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct CommandLoopbackTests {
    private static func withPasswordFile(_ body: (String) async throws -> Void) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "hermes-\(UInt64.random(in: 0 ... .max))"
        )
        try Data("secret-1\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await body(file.path)
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
                try await HermesCommand.run(arguments + ["--register", "hello"])
                try await HermesCommand.run(arguments + ["hello"])
                await #expect(throws: ExitCode.self) { try await HermesCommand.run(arguments + ["other"]) }
                try await HermesCommand.run(arguments.dropLast(2) + ["bye"])
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

    @Test func `sub gives up in time, also when the broker accepts and never answers`() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let silent = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(silent.localAddress?.port)
        let start = ContinuousClock.now
        await #expect(throws: MQTTCommandRun.timedOut) {
            try await HermesCommand.run(["sub", "-t", "a", "-p", "\(port)", "-W", "0.2", "--quiet"])
        }
        // Without the option, the client waits for ten seconds.
        #expect(ContinuousClock.now - start < .seconds(5))
        try await silent.close()
    }

    /// Accepts a subscriber, and then sends publications of QoS 0 as fast as it can.
    private final class Flood: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var reads = 0

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            reads += 1
            // CONNACK, then SUBACK for packet 1.
            let answer: [UInt8] = reads == 1 ? [0x20, 3, 0, 0, 0] : [0x90, 4, 0, 1, 0, 0]
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: answer)), promise: nil)
            if reads == 2 { flood(context) }
        }

        private func flood(_ context: ChannelHandlerContext) {
            let publication: [UInt8] = [0x30, 5, 0, 1, UInt8(ascii: "a"), 0, UInt8(ascii: "x")]
            let many = ByteBuffer(bytes: (0..<10_000).flatMap { _ in publication })
            let context = NIOLoopBound(context, eventLoop: context.eventLoop)
            let me = NIOLoopBound(self, eventLoop: context.value.eventLoop)
            context.value.writeAndFlush(NIOAny(many)).whenSuccess { me.value.flood(context.value) }
        }
    }

    @Test func `sub ends when its time is over, also if the broker sends without a pause`() async throws {
        let broker = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Flood()) }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let port = try #require(broker.localAddress?.port)
        await #expect(throws: MQTTCommandRun.timedOut) {
            try await HermesCommand.run(["sub", "-t", "a", "-p", "\(port)", "-W", "0.5", "--quiet", "-T", "a"])
        }
        try await broker.close()
    }

    @Test func `failures have exit codes`() async throws {
        try await withServer { server in
            try await Self.withPasswordFile { file in
                let login = [
                    "--port", "\(server.port("delimited"))", "--password-file", file, "--no-cache", "--device", "t",
                ]
                await #expect(throws: ExitCode(77)) {
                    try await HermesCommand.run(["send", "--from", "ann", "--to", "bob", "x"] + login)
                }
                await #expect(throws: ExitCode.failure) {
                    try await HermesCommand.run(["send", "--from", "ann", "--to", "nobody", "x", "--register"] + login)
                }
            }
        }
        try await ClosedPort.with { port in
            await #expect(throws: ExitCode(69)) { try await HermesCommand.run(["qsiop", "ping", "--port", "\(port)"]) }
        }
    }

    @Test func `a server that says nothing ends a ping after the time that was asked for`() async throws {
        #expect(try QSIOPPing.parse([]).wait == 5)
        #expect(throws: (any Error).self) { try QSIOPPing.parse(["--wait", "0"]) }
        let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(silent.localAddress?.port)
        let began = ContinuousClock.now
        await #expect(throws: ExitCode.self) {
            try await HermesCommand.run(["qsiop", "ping", "--port", "\(port)", "--wait", "0.2"])
        }
        // The command must not wait for a fixed time.
        #expect(ContinuousClock.now - began < .seconds(14))
        try await silent.close()
    }

    @Test func `room and qsiop run`() async throws {
        try await withServer { server in
            let room = server.port("liveroom")
            try await HermesCommand.run(["room", "lobby", "--name", "ann", "--gift", "rose:2", "--port", "\(room)"])
            try await HermesCommand.run(["room", "lobby", "--watch", "--wait", "2", "--port", "\(room)"])
            try await HermesCommand.run(["qsiop", "ping", "--port", "\(server.port("qsiop"))"])
        }
    }

    @Test func `a watching viewer that cannot connect ends when its time is over`() async throws {
        try await ClosedPort.with { port in
            await #expect(throws: ExitCode(69)) {
                try await HermesCommand.run(["room", "lobby", "--watch", "--wait", "0.5", "--port", "\(port)"])
            }
        }
    }

    /// Counts connections.
    private final class Counter: Sendable {
        private let count = Mutex(0)

        var value: Int { count.withLock { $0 } }

        func next() -> Int {
            count.withLock {
                $0 += 1
                return $0
            }
        }
    }

    /// Ends the first connection when bytes arrive. Answers bytes on later connections with a text.
    private final class Babble: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let isFirst: Bool

        init(isFirst: Bool) { self.isFirst = isFirst }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if isFirst { return context.close(promise: nil) }
            context.writeAndFlush(NIOAny(ByteBuffer(string: "this is no TLS\r\n")), promise: nil)
        }
    }

    @Test func `chat ends if the server does not speak TLS at the first login, but not if it closes`() async throws {
        let connections = Counter()
        let plain = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                let isFirst = connections.next() == 1
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Babble(isFirst: isFirst))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let port = try #require(plain.localAddress?.port)
        try await Self.withPasswordFile { file in
            await #expect(throws: ExitCode.failure) {
                try await HermesCommand.run([
                    "chat", "ann", "--tls", "--port", "\(port)", "--password-file", file, "--no-cache", "--device", "t",
                ])
            }
        }
        #expect(connections.value == 2)
        try await plain.close()
    }

    @Test func `a server that cannot be reached is told in plain words`() async throws {
        // A part of a name cannot be this long, so no DNS server is asked.
        let host = String(repeating: "x", count: 64) + ".invalid"
        try await ClosedPort.with { port in
            for (place, reason) in [
                ("127.0.0.1:\(port)", "cannot connect: 127.0.0.1:\(port): Connection refused; is the server running"),
                ("\(host):1", "cannot connect: \(host) is not known: "),
            ] {
                let failure = await #expect(throws: ClientFailure.self) {
                    try await HTTPEndpoint("http://\(place)", path: "/").get()
                }
                #expect(failure?.message.hasPrefix(reason) == true, "\(failure?.message ?? "")")
                #expect(failure?.exitCode == ExitCode(69) && failure?.message.contains("Error") == false)
            }
        }
    }

    @Test func `a file for pub that cannot be read is a failure, and no wrong command line`() async throws {
        let missing = NSTemporaryDirectory() + "/h-\(UInt64.random(in: 0 ... .max))"
        await #expect(throws: ExitCode(66)) {
            try await HermesCommand.run(["pub", "-t", "a", "-f", missing, "-p", "1", "--quiet"])
        }
    }

    @Test func `pub and sub run`() async throws {
        try await withServer { server in
            let port = ["-h", "127.0.0.1", "-p", "\(server.port("mqtt"))"]
            try await HermesCommand.run(["pub", "-t", "a/b", "-m", "kept", "-r", "-q", "2"] + port)
            try await HermesCommand.run(["sub", "-t", "a/+", "-C", "1", "-q", "1", "-F", "%j"] + port)
            try await HermesCommand.run(["pub", "-t", "a/b", "-n", "-r", "-q", "1", "-V", "311"] + port)
            await #expect(throws: ExitCode(27)) {
                try await HermesCommand.run(["sub", "-t", "a/#", "-W", "0.2", "--quiet"] + port)
            }
            try await HermesCommand.run(["sub", "-i", "kept", "-c", "-t", "a/b", "-q", "2", "-E"] + port)
            try await HermesCommand.run(["pub", "-t", "a/b", "-m", "later", "-q", "2"] + port)
            try await HermesCommand.run(["sub", "-i", "kept", "-c", "-t", "a/b", "-q", "2", "-C", "1", "-v"] + port)
        }
    }

    @Test(arguments: [
        ["chat"], ["chat", "ann", "--count", "0"], ["chat", "ann", "--port", "70000"], ["send", "x"],
        ["room", "no spaces"], ["room", "lobby", "--watch", "--gift", "x"], ["qsiop", "report"],
        ["chat", "ann", "--device", "with space"], ["chat", "ann", "--no-tls", "--tls-insecure"],
    ])
    func `nonsense is refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try HermesCommand.parseAsRoot(arguments) }
    }
}
