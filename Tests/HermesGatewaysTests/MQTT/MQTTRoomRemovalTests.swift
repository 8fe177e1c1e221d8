// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// An operator removes a client from a room while the client connects to a durable session, or while messages wait for
/// it.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTRoomRemovalTests {
    private static func connect() -> MQTTConnect {
        var connect = MQTTConnect(version: .v5, clientID: "tablet", cleanStart: false)
        connect.userName = "ann"
        connect.password = ByteBuffer(string: "correct horse")
        connect.properties = [.sessionExpiryInterval(600)]
        return connect
    }

    /// Lets ann's client connect again to its durable session. Removes ann from the lobby while the session is being
    /// opened in the store.
    ///
    /// - Returns: the client, which has no CONNACK yet. The store does nothing until the test opens it.
    private func removed(_ harness: GatewayHarness, _ store: ScriptedSessionStore) async throws -> MQTTTestClient {
        _ = try await harness.register("ann")
        let filters = (0..<200).map { "other/\($0)" } + ["room/lobby", "$share/g/room/lobby", "end"]
        let (first, _) = try await harness.apply(Self.connect())
        let suback = try await first.subscribe(filters, qos: .atLeastOnce)
        #expect(suback.reasons.allSatisfy { $0 == .grantedQoS1 })
        try await first.disconnect()
        let durable = harness.messenger.durable
        while try await store.base.sessions().contains(where: { $0.isOnline }) { await Task.yield() }
        while durable.statistics.commits.waiting > 0 { await Task.yield() }

        store.close()
        let second = try await MQTTTestClient.open(harness)
        try await second.send(.connect(Self.connect()))
        while durable.statistics.commits.waiting == 0 { await Task.yield() }
        let account = try #require(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))))
        _ = await harness.environment.loops.remove(RoomExpulsion(of: account, from: .lobby))
        return second
    }

    private static func hasLeft(_ store: ScriptedSessionStore) async throws -> Bool {
        try await store.filters("tablet").isDisjoint(with: ["room/lobby", "$share/g/room/lobby"])
    }

    @Test func `the subscriptions end, and the client is told after CONNACK`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await removed(harness, store)
            store.open()
            guard case .connack(let connack) = try await client.next() else { throw Unexpected("no CONNACK") }
            #expect(connack.reason == .success && connack.sessionPresent)
            let kicked = try await client.publication()
            #expect(kicked.topic == "room/lobby")
            #expect(kicked.properties.userProperties.map(\.value) == ["5"])
            let publisher = try await harness.mqtt("publisher", .v5)
            for topic in ["room/lobby", "end"] {
                for qos in [MQTTQoS.atMostOnce, .atLeastOnce] { try await publisher.publish(topic, "x", qos: qos) }
            }
            for _ in 0..<2 { #expect(try await client.taken().topic == "end") }
            #expect(try await client.untilPong().isEmpty)
            #expect(try await client.unsubscribe("room/lobby").reasons == [.noSubscriptionExisted])
            while try await !Self.hasLeft(store) { await Task.yield() }
            #expect(try await store.filters("tablet").contains("end"))
            // The client may subscribe to the room again.
            #expect(try await client.subscribe("room/lobby", qos: .atLeastOnce).reasons == [.grantedQoS1])
            try await publisher.publish("room/lobby", "again")
            #expect(try await client.taken().text == "again")
        }
    }

    @Test(arguments: [false, true], ["room/lobby", "room/+"])
    func `messages that wait do not come any more`(isKept: Bool, filter: String) async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.register("ann")
            var connect = Self.connect()
            connect.cleanStart = !isKept
            connect.properties = [.receiveMaximum(2)]
            if isKept { connect.properties = [.receiveMaximum(2), .sessionExpiryInterval(600)] }
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            let suback = try await client.subscribe(filter, "end", qos: .atLeastOnce)
            #expect(suback.reasons == [.grantedQoS1, .grantedQoS1])
            let publisher = try await harness.mqtt("publisher", .v5)
            for number in 0..<4 { try await publisher.publish("room/lobby", "\(number)", qos: .atLeastOnce) }
            let first = try await client.publication()
            #expect(first.text == "0")
            let account = try #require(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))))
            _ = await harness.environment.loops.remove(RoomExpulsion(of: account, from: .lobby))
            let kicked = try await client.publication()
            #expect(kicked.properties.userProperties.map(\.value) == ["5"])
            try await publisher.publish("end", "end", qos: .atLeastOnce)
            let packetID = try #require(first.packetID)
            try await client.send(.puback(MQTTAcknowledgement(packetID: packetID)))
            #expect(try await client.publication().text == "end")
        }
    }

    @Test func `of many filters, those that match the room end or leave it out`() async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.register("ann")
            let (client, connack) = try await harness.apply(Self.connect())
            #expect(connack.reason == .success)
            let others =
                (0..<200).map { "room/lobby\($0)" } + (0..<200).map { "+/x\($0)" }
                + ["room", "lobby", "room/lobby/x", "+/lobby/+/y", "$share/g/lobby", "end"]
            let matching = ["room/lobby", "$share/g/room/lobby", "+/lobby"]
            let suback = try await client.subscribe(others + matching, qos: .atLeastOnce)
            #expect(suback.reasons.allSatisfy { $0 == .grantedQoS1 })
            let account = try #require(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))))
            let expulsion = RoomExpulsion(of: account, from: .lobby)
            #expect(await harness.environment.loops.remove(expulsion) == 1)
            #expect(await harness.environment.loops.remove(expulsion) == 0)
            #expect(try await client.publication().properties.userProperties.map(\.value) == ["5"])
            let publisher = try await harness.mqtt("publisher", .v5)
            for topic in ["room/lobby", "room/lobby/x", "other/lobby", "room/lobby1", "end"] {
                try await publisher.publish(topic, "x")
            }
            for topic in ["room/lobby/x", "other/lobby", "room/lobby1", "end"] {
                #expect(try await client.taken().topic == topic)
            }
            #expect(
                try await client.unsubscribe("room/lobby", "$share/g/room/lobby", "+/lobby", "room/lobby/x").reasons
                    == [.noSubscriptionExisted, .noSubscriptionExisted, .success, .success]
            )
            // The client may subscribe to the room again.
            #expect(try await client.subscribe("+/lobby", qos: .atLeastOnce).reasons == [.grantedQoS1])
            try await publisher.publish("room/lobby", "again")
            #expect(try await client.taken().text == "again")
        }
    }

    @Test func `in the store they end even if the client closes before CONNACK`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await removed(harness, store)
            try await client.drop()
            store.open()
            while try await !Self.hasLeft(store) { await Task.yield() }
            #expect(try await store.filters("tablet").contains("end"))
        }
    }

    @Test func `a removal from more rooms than can be closed ends the connection`() async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.register("ann")
            var connect = Self.connect()
            connect.cleanStart = true
            connect.properties = []
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            _ = try await client.subscribe("#", qos: .atMostOnce)
            let account = try #require(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))))
            let rooms = try (0...100).map { try #require(RoomName("r\($0)")) }
            for room in rooms.dropLast() {
                #expect(await harness.environment.loops.remove(RoomExpulsion(of: account, from: room)) == 1)
            }
            // The client gets a notice of each removal, and stays connected.
            #expect(try await client.untilPong().count == 100)
            #expect(await harness.environment.loops.remove(RoomExpulsion(of: account, from: rooms[100])) == 1)
            guard case .disconnect(let packet) = try await client.next() else { throw Unexpected("no DISCONNECT") }
            #expect(packet.reason == .administrativeAction)
            #expect(try await client.untilEnd().isEmpty)
        }
    }
}
