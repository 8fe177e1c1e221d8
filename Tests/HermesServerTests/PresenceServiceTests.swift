// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesServer
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct PresenceServiceTests {
    @Test func `whoever comes and goes too often is told of a second later by the running server, which ends`()
        async throws
    {
        try await withServer(store: .memory) { server in
            let address = ServerAddress(port: server.port("delimited"))
            func client(_ name: String) throws -> HermesClient {
                try HermesClient(.init(server: address, device: Hermes.DeviceDescription(id: name)))
            }
            let ann = try client("ann")
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-1"))
            var bob = try client("bob")
            let account = try await bob.logIn(.register(nickName: "bob", password: "secret-1"))
            await bob.close()
            func isGone() async throws {
                while try await ann.watchPresence(of: [account.uid]).first?.isOnline != false {}
            }
            try await isGone()
            let events = ann.ephemeralEvents
            // Five changes after two: four of them all are told at once, unless this takes more than a second.
            for number in 0..<3 {
                bob = try client("bob")
                _ = try await bob.logIn(.token(account.token))
                guard number < 2 else { break }
                await bob.close()
                try await isGone()
            }
            var told: [Bool] = []
            for await event in events {
                if case .presence(let presence) = event.kind { told.append(presence.isOnline) }
                if told.count >= 3, told.last == true { break }
            }
            #expect(told == [true, false, true])
            await bob.close()
            await ann.close()
        }
    }
}
