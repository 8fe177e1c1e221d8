// Hermes
// SPDX-License-Identifier: Apache-2.0

import ChatLogic
import Foundation
import Hermes
import HermesTestKit
import Testing

/// Tests the whole app, except its screens, against a server.
@Suite(.inTurns, .timeLimit(.minutes(1)))
@MainActor
struct ChatSessionTests {
    private static func configuration(_ server: TestServer, device: String) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: server.port("delimited")),
            device: DeviceDescription(id: device)
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(10)], maxAdvisedWindow: .zero)
        configuration.localStore = MemoryLocalStore()
        return configuration
    }

    /// Creates a session. The stream delivers the states of the session.
    private static func session(
        _ server: TestServer,
        _ name: String
    ) throws -> (session: ChatSession, states: AsyncStream<ChatState>) {
        let (states, continuation) = AsyncStream.makeStream(of: ChatState.self)
        let session = try ChatSession(configuration(server, device: name)) { continuation.yield($0) }
        return (session, states)
    }

    /// Returns the first state that meets the condition.
    private static func first(
        of states: AsyncStream<ChatState>,
        where isWanted: (ChatState) -> Bool
    ) async throws -> ChatState {
        for await state in states where isWanted(state) { return state }
        throw CancellationError()
    }

    @Test func `two people talk, also across a restart of the server, and see it`() async throws {
        try await withServer(store: .sqlite) { @MainActor server in
            let (ann, annStates) = try Self.session(server, "ann")
            let (bob, bobStates) = try Self.session(server, "bob")
            // These tasks are unstructured. They run until the sessions are closed below.
            let running = [
                Task { try await ann.run(.register(nickName: "ann", password: "secret")) { _ in } },
                Task { try await bob.run(.register(nickName: "bob", password: "secret")) { _ in } },
            ]
            _ = try await Self.first(of: bobStates) { $0.nickName == "bob" }
            _ = try await Self.first(of: annStates) { $0.nickName == "ann" }

            try await ann.open(nickName: "bob")
            try await ann.send("hello")
            let seen = try await Self.first(of: bobStates) { $0.unread == 1 }
            #expect(seen.transcripts.map(\.title) == ["ann"])
            let sent = try await Self.first(of: annStates) { $0.transcripts.first?.lines.first?.mark == .sent }
            #expect(sent.transcripts.first?.lines.map(\.text) == ["hello"])

            try await server.restart()
            bob.open(try #require(seen.transcripts.first?.conversation))
            try await bob.send("written while you were away")
            let answer = try await Self.first(of: annStates) { $0.transcripts.first?.lines.count == 2 }
            #expect(answer.transcripts.first?.lines.map(\.author) == ["", "bob"])
            // Ann has the conversation open.
            #expect(answer.unread == 0)

            await ann.close()
            await bob.close()
            for task in running { try await task.value }
            #expect(ann.state.banner == .signedOut(nil))
        }
    }
}
