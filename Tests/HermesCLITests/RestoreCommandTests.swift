// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@testable import HermesCLI

/// Tests `hermes restore` and `hermes health`.
@Suite("Restore and health", .inTurns, .timeLimit(.minutes(2)))
struct RestoreCommandTests {
    private static func withDirectory(_ body: (String) async throws -> Void) async throws {
        let parent = FileManager.default.temporaryDirectory.path + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: parent + "/data", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: parent) }
        try await body(parent)
    }

    private static func administer(_ request: ControlRequest, _ data: String) async throws -> ControlResponse {
        try await HermesServer.administer(request, arguments: ["--data.directory", data], environment: [:], file: nil)
    }

    /// The number of API keys in a data directory.
    private static func keys(_ data: String) async throws -> Int? {
        guard case .apiKeys(let keys) = try await administer(.listAPIKeys, data) else { return nil }
        return keys.count
    }

    @Test func `a restore brings back what the backup has, and says where the former database is`() async throws {
        try await Self.withDirectory { parent in
            let (data, backup) = (parent + "/data", parent + "/backup.db")
            _ = try await Self.administer(.createAPIKey(name: "first", scopes: "all"), data)
            try await HermesCommand.run(["backup", backup, "--data", data])
            _ = try await Self.administer(.createAPIKey(name: "second", scopes: "all"), data)
            #expect(try await Self.keys(data) == 2)
            try await HermesCommand.run(["restore", backup, "--data", data])
            #expect(try await Self.keys(data) == 1)
            let said = try HermesServer.restore(
                backup,
                arguments: ["--data.directory", data],
                environment: [:],
                file: nil,
                log: { _ in }
            )
            #expect(said.hasPrefix("restored \(data)/hermes.db from \(backup): ") && said.contains("accounts: 0"))
            #expect(said.contains("; the former database is in ") && said.contains("/data/replaced-"))
            let folders = try FileManager.default.contentsOfDirectory(atPath: data).filter { $0.hasPrefix("replaced-") }
            #expect(folders.count == 2)
        }
    }

    @Test func `a restore beside a running server is refused, and the server goes on`() async throws {
        try await withServer(store: .sqlite) { server in
            let (data, backup) = (server.dataDirectory, server.dataDirectory + "/backup")
            try await HermesCommand.run(["backup", backup, "--data", data])
            _ = try await Self.administer(.createAPIKey(name: "later", scopes: "all"), data)
            await #expect(throws: ExitCode(75)) { try await HermesCommand.run(["restore", backup, "--data", data]) }
            let names = try FileManager.default.contentsOfDirectory(atPath: data)
            #expect(!names.contains { $0.contains(".restoring") || $0.contains("replaced") }, "\(names)")
            #expect(try await Self.keys(data) == 1)
            try await server.restart()
            #expect(try await Self.keys(data) == 1)
        }
    }

    @Test func `what cannot be restored has the documented exit codes, and nothing is created`() async throws {
        try await Self.withDirectory { parent in
            let (data, file) = (parent + "/data", parent + "/file")
            await #expect(throws: ExitCode(1)) { try await HermesCommand.run(["restore", file, "--data", data]) }
            try Data("no database".utf8).write(to: URL(fileURLWithPath: file))
            await #expect(throws: ExitCode(78)) {
                try await HermesCommand.run(["restore", file, "--data", parent + "/none"])
            }
            #expect(!FileManager.default.fileExists(atPath: parent + "/none"))
            await #expect(throws: ExitCode(65)) { try await HermesCommand.run(["restore", file, "--data", data]) }
            await #expect(throws: ExitCode(76)) { try await HermesCommand.run(["restore", parent, "--data", data]) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: data) == ["hermes.lock"])
        }
    }

    /// Answers each connection like a server that is starting.
    private final class Starting: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nstarting\n"
            context.writeAndFlush(NIOAny(ByteBuffer(string: answer)), promise: nil)
        }
    }

    @Test func `health tells a ready server from one that is starting, and from none`() async throws {
        let port = try await withServer { server in
            try await HermesCommand.run(["health", "--listeners.http.port", "\(server.port("http"))"])
            return server.port("http")
        }
        // The server has ended.
        await #expect(throws: ExitCode(69)) {
            try await HermesCommand.run(["health", "--listeners.http.port", "\(port)"])
        }
        await #expect(throws: ExitCode(78)) { try await HermesCommand.run(["health", "--listeners.http.port", "0"]) }
        let starting = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Starting()) }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let other = try #require(starting.localAddress?.port)
        await #expect(throws: ExitCode(1)) {
            try await HermesCommand.run(["health", "--listeners.http.port", "\(other)"])
        }
        try await starting.close()
    }
}
