// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesProtocols
import HermesTestKit
import Testing

/// A client of IMPB acknowledges only entries that the app has taken.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct IMPBAcknowledgementTests {
    private static func phone(_ server: TestServer) throws -> IMPBClient {
        var configuration = IMPBClient.Configuration(
            server: ServerAddress(port: server.port("impb")),
            device: DeviceDescription(id: "phone")
        )
        configuration.conditions = DeviceConditions()
        return try IMPBClient(configuration)
    }

    /// Returns the text of the next message. Does not take a later event.
    private static func text(from client: IMPBClient) async -> String? {
        for await event in client.events {
            if case .message(let message) = event { return message.text }
        }
        return nil
    }

    @Test func `a request acknowledges nothing that the app has not taken`() async throws {
        try await withServer { server in
            let ann = try Self.phone(server)
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-ann"))
            let first = try Self.phone(server)
            let login = try await first.logIn(.register(nickName: "bob", password: "secret-bob"))
            await first.close()
            for text in ["1", "2", "3"] { try await ann.send(text, to: login.uid) }

            let lost = try Self.phone(server)
            _ = try await lost.logIn(.token(login.token))
            #expect(await Self.text(from: lost) == "1")
            _ = try await lost.account(id: login.uid)
            // Acknowledgements are committed together with the next commit.
            try await ann.send("4", to: login.uid)
            // The app's next run begins before the app has taken anything.
            let next = try Self.phone(server)
            _ = try await next.logIn(.token(login.token))
            #expect(await Self.text(from: next) == "1")
            for client in [ann, lost, next] { await client.close() }
        }
    }
}
