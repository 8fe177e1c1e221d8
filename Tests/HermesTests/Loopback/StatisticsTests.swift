// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import Testing

/// Clients' statistics reach the server, and its heartbeat priors reach clients.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct StatisticsTests {
    private static func configuration(_ server: TestServer, device: String) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: server.port("delimited")),
            device: DeviceDescription(id: device, appVersion: "7.1")
        )
        configuration.conditions = DeviceConditions()
        configuration.conditions.networkPath = NetworkPath(label: "wifi home")
        configuration.heartbeat = .adaptive
        configuration.statisticsInterval = .milliseconds(300)
        return configuration
    }

    @Test func `the server sums up what clients count, per version of the app`() async throws {
        try await withServer { server in
            let ann = try HermesClient(Self.configuration(server, device: "ann"))
            let session = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            let bob = try HermesClient(Self.configuration(server, device: "bob"))
            _ = try await bob.logIn(.register(nickName: "bob", password: "secret"))
            for number in 1...3 { try await bob.send("\(number)", to: .user(session.uid)).receipt() }
            let events = ann.events.makeAsyncIterator()
            for _ in 1...3 { _ = await events.next() }
            // The first report may have been sent before the messages. The server accepts the next report ten seconds
            // later at the earliest.
            let clock = ContinuousClock()
            let deadline = clock.now + .seconds(20)
            while try server.reported(appVersion: "7.1").received < 3, clock.now < deadline {
                try await clock.sleep(for: .milliseconds(20))
            }
            let reported = try server.reported(appVersion: "7.1")
            #expect(reported.received == 3 && reported.within1s == 3)
            await ann.close()
            await bob.close()
        }
    }

    @Test func `a network's heartbeat is told to clients that do not know it, if the server is to`() async throws {
        try await withServer(configure: TestServer.sharingHeartbeats) { server in
            let told = try await Self.interval(after: server)
            #expect(told == .seconds(290))
        }
        try await withServer { server in
            let told = try await Self.interval(after: server)
            #expect(told == nil)
        }
    }

    /// Returns the heartbeat interval of a client after its first login.
    private static func interval(after server: TestServer) async throws -> Duration? {
        try server.settleHeartbeats(at: .seconds(290), in: "wifi")
        let configuration = Self.configuration(server, device: "ann")
        let ann = try HermesClient(configuration)
        _ = try await ann.logIn(.register(nickName: "ann", password: "secret"))
        let learned = configuration.conditions.heartbeatStore.learned(of: "wifi home")
        await ann.close()
        return learned?.interval
    }
}
