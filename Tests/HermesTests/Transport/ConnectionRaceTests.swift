// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct ConnectionRaceTests {
    @Test func `each gets a head start before the next`() {
        var race = ConnectionRace(count: 3)
        #expect(race.began() == [.open(0), .startTimer(1)])
        #expect(race.delayPassed(1) == [.open(1), .startTimer(2)])
        #expect(race.delayPassed(2) == [.open(2)])
        #expect(race.opened() == [.keep])
        #expect(race.failed() == [])
        #expect(race.opened() == [.discard])
    }

    @Test func `a failure lets the next one go at once, unless another is still being tried`() {
        var race = ConnectionRace(count: 4)
        _ = race.began()
        #expect(race.failed() == [.open(1), .startTimer(2)])
        // The timer of the first endpoint fires after its failure.
        #expect(race.delayPassed(1) == [])
        #expect(race.delayPassed(2) == [.open(2), .startTimer(3)])
        #expect(race.failed() == [])
        #expect(race.failed() == [.open(3)])
        #expect(race.delayPassed(3) == [])
        #expect(race.failed() == [.giveUp])
    }

    @Test func `nothing is started once there is a winner`() {
        var race = ConnectionRace(count: 2)
        _ = race.began()
        #expect(race.opened() == [.keep])
        #expect(race.delayPassed(1) == [])
        var single = ConnectionRace(count: 1)
        #expect(single.began() == [.open(0)])
        #expect(single.failed() == [.giveUp])
    }

    @Test func `of several addresses the one that answers is used`() async throws {
        let gone = try await FakeHermesServer.scripted { _, _ in }
        try await gone.stop()
        let server = try await FakeHermesServer.scripted { packet, connection in connection.accept(id: packet.id) }
        var configuration = HermesClient.Configuration.fake(port: gone.port)
        configuration.server.alternatives = [.init(host: "127.0.0.1", port: server.port)]
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        await client.close()
        try await server.stop()
    }

    @Test func `where none answers all are told`() async throws {
        let gone = try await FakeHermesServer.scripted { _, _ in }
        try await gone.stop()
        var configuration = HermesClient.Configuration.fake(port: gone.port)
        configuration.server.alternatives = [.init(host: "localhost", port: gone.port)]
        configuration.reconnect = .never
        let client = try HermesClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.logIn(.token("t")) }
        #expect(error?.code == .cannotConnect)
        #expect(error?.message.contains("127.0.0.1:\(gone.port): ") == true)
        #expect(error?.message.contains("localhost:\(gone.port): ") == true)
    }
}
