// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesTestKit
import Testing

@testable import HermesServer

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
            // Five changes follow two changes. Only four of all changes are reported at once, unless this takes more
            // than a second.
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

    @Test func `the last change of whoever comes and goes too often is stored for the back end when the server stops`()
        async throws
    {
        // With this answer, nothing leaves the queue.
        let backEnd = try await FakeEndpoint.start { _, _ in FakeEndpoint.Answer(503) }
        let clock = ManualClock()
        func configure(_ settings: inout ServerSettings) { settings.webhooks.url = backEnd.url + "/events" }
        typealias Rest = (any WebhookStore, HermesClient)
        let (store, last) = try await withServer(time: clock, configure: configure) { server -> Rest in
            func client() throws -> HermesClient {
                let address = ServerAddress(port: server.port("delimited"))
                let device = Hermes.DeviceDescription(id: "phone")
                var configuration = HermesClient.Configuration(server: address, device: device)
                configuration.reconnect = .never
                return try HermesClient(configuration)
            }
            var bob = try client()
            let account = try await bob.logIn(.register(nickName: "bob", password: "secret-1"))
            // Four changes happen in another second, while the clock is stopped. The fifth change is the end of the
            // server.
            clock.advance(by: .seconds(2))
            for _ in 0..<2 {
                await bob.close()
                while try server.connectedDevices() > 0 { await Task.yield() }
                bob = try client()
                _ = try await bob.logIn(.token(account.token))
            }
            let outbox = try #require(try server.assembly().outbound.outbox)
            return (outbox.store, bob)
        }
        await last.close()
        await backEnd.stop()
        let stored = try await store.dueWebhooks(now: clock.now().advanced(by: .seconds(3_600)), limit: 100)
        let areOffline = stored.map { String(decoding: $0.event.body, as: UTF8.self).contains(#""type":"offline""#) }
        #expect(areOffline == [false, true, false, true, false, true])
    }
}
