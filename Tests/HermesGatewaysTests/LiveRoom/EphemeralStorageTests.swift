// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// Checks in the store that ephemeral events are never stored.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct EphemeralStorageTests {
    private typealias Frames = LiveRoomTestFrames

    private func inLobby(_ change: (inout Hermes_V1_RoomRequest) -> Void) -> Hermes_V1_Packet.OneOf_Body {
        var request = Hermes_V1_RoomRequest()
        request.room = "lobby"
        change(&request)
        return .room(request)
    }

    /// Connects a client with a durable session.
    private func mqtt(_ name: String, _ server: GatewayHarness) async throws -> MQTTTestClient {
        let client = try await MQTTTestClient.open(port: server.port("mqtt"))
        var connect = MQTTConnect(version: .v5, clientID: name)
        connect.properties = [.sessionExpiryInterval(600)]
        try await client.send(.connect(connect))
        guard case .connack(let connack) = try await client.next() else { throw Unexpected("no CONNACK") }
        #expect(connack.reason == .success)
        return client
    }

    @Test func `a text over LiveRoom or the native protocol is neither queued nor retained, but one over MQTT may be`()
        async throws
    {
        let store = MemoryStore()
        try await GatewayHarness.with(store: store) { server in
            let away = try await mqtt("away", server)
            #expect(try await away.subscribe("room/lobby", qos: .atLeastOnce).reasons == [.grantedQoS1])
            try await away.disconnect()

            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            let mark = Frames.raw(20)
            try await viewer.send(mark)
            #expect(try await viewer.next() == mark)
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            _ = try await ann.ask(2, inLobby { $0.enter.user.level = 7 })
            _ = try await viewer.next()
            try await ann.write(3, inLobby { $0.text.text = "native" })
            #expect(try await ann.ephemeral().room.text.text == "native")
            try await viewer.send(try Frames.text("LiveRoom", from: "bob"))
            #expect(try await ann.ephemeral().room.text.text == "LiveRoom")

            let publisher = try await mqtt("publisher", server)
            #expect(try await publisher.publish("room/lobby", "MQTT", retain: true) == .success)
            let session = try #require(try await store.sessions().first { $0.key.clientID == "away" })
            let queue = try await store.queued(of: session.id, after: 0, limit: 100, maxBytes: .max)
            #expect(queue.map { String(buffer: $0.publication.payload) } == ["MQTT"])
            #expect(try await store.retained().map { String(buffer: $0.payload) } == ["MQTT"])
        }
    }

    @Test func `typing, presence and signals leave nothing in an inbox`() async throws {
        let store = MemoryStore()
        try await GatewayHarness.with(store: store) { server in
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            func heads() async throws -> [UInt64] {
                var heads: [UInt64] = []
                for uid in [annUID, bobUID] {
                    heads.append(try await store.position(of: try #require(UserID(uid))).head)
                }
                return heads
            }
            try await server.befriend(annUID, bobUID)
            let before = try await heads()

            try await ann.ask(2, .typing(.with { $0.conversation.uid = bobUID }))
            #expect(try await bob.ephemeral().typing.uid == annUID)
            try await ann.ask(
                3,
                .signal(
                    .with {
                        $0.toUid = bobUID
                        $0.sessionID = "call"
                        $0.data = Data([1, 2])
                    }
                )
            )
            #expect(try await bob.ephemeral().signal.fromUid == annUID)
            _ = try await bob.ask(4, .presence(.with { $0.watchUids = [annUID] }))
            try await ann.wire.close()
            #expect(try await bob.ephemeral().presence.uid == annUID)
            #expect(try await heads() == before)

            // In contrast, a message is stored.
            try await bob.send("hi", to: annUID, id: 5)
            _ = try await bob.receipt(5)
            #expect(try await heads()[0] == before[0] + 1)
        }
    }
}
