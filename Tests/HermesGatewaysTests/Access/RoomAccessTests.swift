// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

@Suite("The rules for topics hold in rooms, whatever the protocol", .inTurns, .timeLimit(.minutes(1)))
struct RoomAccessTests {
    static let rules = """
        deny user bob readwrite room/closed
        deny user bob write room/quiet
        deny user bob read room/blind
        deny anonymous readwrite room/members
        """

    /// The rooms, and bob's rights to enter them and to send to them.
    static let rooms: [(room: String, enters: Bool, talks: Bool)] = [
        ("open", true, true), ("quiet", true, false), ("closed", false, false), ("members", true, true),
        // Only MQTT clients can send to a room without being in it.
        ("blind", false, true),
    ]

    @Test(arguments: RoomProtocol.allCases, rooms)
    func `each protocol, each action`(
        _ kind: RoomProtocol,
        _ row: (room: String, enters: Bool, talks: Bool)
    ) async throws {
        let access = TopicAccess(try TopicRules(parsing: Self.rules))
        try await GatewayHarness.with(access: access, loops: 1) { server in
            let witness = try await server.delimited()
            _ = try await witness.register("ann")
            let registration = try await server.delimited()
            let token = try await registration.register("bob", device: "first").token
            #expect(try await !witness.ask(2, .room(.entering(row.room))).hasError)

            let bob = try await kind.connect(to: server, token: token)
            #expect(try await bob.enter(row.room) == row.enters)
            try await bob.say("from bob", in: row.room)
            try await witness.write(3, .room(.saying("end", in: row.room)))
            var heard: [String] = []
            var cameAndWent = 0
            while heard.last != "end" {
                switch try await witness.ephemeral().room.event {
                case .text(let text): heard.append(text.text)
                case .joined, .left: cameAndWent += 1
                default: break
                }
            }
            let isHeard = row.talks && (row.enters || kind == .mqtt)
            #expect(heard == (isHeard ? ["from bob", "end"] : ["end"]))
            // If bob may not send, nobody sees that he joins or leaves. Ann's own events came before.
            if !isHeard { #expect(cameAndWent == 0) }
            if row.enters { #expect(try await bob.hears("end")) }
        }
    }

    @Test(arguments: RoomProtocol.allCases)
    func `rules that are reloaded remove who may not be there any more`(_ kind: RoomProtocol) async throws {
        let access = TopicAccess()
        try await GatewayHarness.with(access: access, loops: 1) { server in
            let registration = try await server.delimited()
            let token = try await registration.register("bob", device: "first").token
            let bob = try await kind.connect(to: server, token: token)
            #expect(try await bob.enter("lobby"))
            access.replace(with: try TopicRules(parsing: "deny user bob read room/lobby"))
            await server.turnsAreTaken()
            if kind != .mqtt { #expect(try await bob.isToldThatItIsOut()) }
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            try await ann.ask(2, .room(.entering("lobby")))
            try await ann.ask(3, .room(.saying("secret", in: "lobby")))
            #expect(try await !bob.hears("secret"))
        }
    }

    /// MQTT is not in the list, because its connections end when their account is renamed.
    @Test(arguments: [RoomProtocol.delimited, .liveRoom])
    func `the rules for the new name of an account hold at once`(_ kind: RoomProtocol) async throws {
        let rules = "deny user eve read room/lobby\ndeny user eve write room/quiet"
        try await GatewayHarness.with(access: TopicAccess(try TopicRules(parsing: rules)), loops: 1) { server in
            let witness = try await server.delimited()
            _ = try await witness.register("ann")
            try await witness.ask(2, .room(.entering("quiet")))
            let registration = try await server.delimited()
            let session = try await registration.register("bob", device: "first")
            let bob = try await kind.connect(to: server, token: session.token)
            // The rules for the old name apply.
            #expect(try await bob.enter("quiet"))
            try await bob.say("before", in: "quiet")
            #expect(try await bob.enter("lobby"))
            try await server.rename(session.uid, to: "eve")
            #expect(try await bob.isToldThatItIsOut())
            if kind == .delimited { try await bob.say("after", in: "quiet") }
            try await witness.write(3, .room(.saying("end", in: "quiet")))
            var heard: [String] = []
            while heard.last != "end" {
                if case .text(let text) = try await witness.ephemeral().room.event { heard.append(text.text) }
            }
            #expect(heard == ["before", "end"])
        }
    }

    @Test
    func `a viewer that the rules keep out without an account waits outside until it shows one`() async throws {
        let access = TopicAccess(try TopicRules(parsing: "deny anonymous readwrite room/lobby"))
        try await GatewayHarness.with(access: access, loops: 1) { server in
            let registration = try await server.delimited()
            let token = try await registration.register("bob", device: "first").token
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            // When the server has accepted the viewer, the viewer would be in the room if the rules allowed it.
            while try await server.openCount() < 2 { try Task.checkCancellation() }
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            #expect(try await !ann.ask(2, .room(.entering("lobby"))).hasError)
            #expect(try await !ann.ask(3, .room(.saying("not for strangers", in: "lobby"))).hasError)
            // Nobody gets the first text, not even the viewer.
            try await viewer.send(
                try LiveRoomTestFrames.text("unheard"),
                try LiveRoomTestFrames.enter(token: token),
                try LiveRoomTestFrames.text("heard")
            )
            #expect(try await viewer.next() == LiveRoomTestFrames.text("heard"))
            let other = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            try await other.send(try LiveRoomTestFrames.enter(room: "lobby"))
            #expect(try await other.next()?.type == .kicked)
        }
    }

    @Test
    func `the rules for keys of the HTTP API are those that name one`() throws {
        let rules = TopicAccess(
            try TopicRules(parsing: "deny key news write room/staff\ndeny anonymous write room/#\ndeny all readwrite #")
        )
        let staff = try #require(RoomName("staff"))
        let lobby = try #require(RoomName("lobby"))
        let news = ClientIdentity(clientID: "", apiKey: "news")
        let other = ClientIdentity(clientID: "", apiKey: "other")
        #expect(!rules.may(news, .publish, staff))
        #expect(rules.may(news, .subscribe, staff))
        #expect(rules.may(news, .publish, lobby))
        #expect(rules.may(other, .publish, staff))
        #expect(!rules.may(ClientIdentity(userName: "news", clientID: ""), .publish, lobby))
        #expect(rules.current.allows(.publish, "user/ann/x", for: news))
    }
}

/// The protocols that reach rooms.
enum RoomProtocol: CaseIterable {
    case delimited
    case liveRoom
    case mqtt
    case nativeOverMQTT

    /// Connects bob.
    func connect(to server: GatewayHarness, token: String) async throws -> any RoomGuest {
        switch self {
        case .delimited:
            let client = try await server.delimited()
            _ = try await client.authenticate(token: token, device: "first")
            return DelimitedGuest(client: client)
        case .liveRoom:
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            return LiveRoomGuest(viewer: viewer, token: token, plane: server.environment.loops.topicPlane)
        case .mqtt:
            return MQTTGuest(client: try await Self.mqtt(server))
        case .nativeOverMQTT:
            let client = try await Self.mqtt(server)
            _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
            return CarriedGuest(client: client)
        }
    }

    private static func mqtt(_ server: GatewayHarness) async throws -> MQTTTestClient {
        let client = try await MQTTTestClient.open(port: server.port("mqtt"))
        var connect = MQTTConnect(version: .v5, clientID: "first")
        connect.userName = "bob"
        connect.password = ByteBuffer(string: "password of bob")
        try await client.send(.connect(connect))
        guard case .connack(let connack) = try await client.next(), connack.reason == .success else {
            throw Unexpected("not connected")
        }
        return client
    }
}

/// A client in a room, over any protocol. Only one task at a time may use it.
protocol RoomGuest: AnyObject {
    /// - Returns: whether the client is in the room.
    func enter(_ room: String) async throws -> Bool
    /// Sends a text to a room. Returns after the server has handled it.
    func say(_ text: String, in room: String) async throws
    /// Whether the client gets the text among all texts that were published before.
    func hears(_ text: String) async throws -> Bool
    func isToldThatItIsOut() async throws -> Bool
}

/// A client of the native protocol, over any carrier.
private protocol NativeGuest: RoomGuest {
    var heard: [String] { get }
    /// Sends a request, and keeps the texts that arrive before its answer.
    func ask(_ id: UInt64, _ request: Hermes_V1_RoomRequest) async throws -> Hermes_V1_Result
}

extension NativeGuest {
    func enter(_ room: String) async throws -> Bool { try await !ask(5, .entering(room)).hasError }

    func say(_ text: String, in room: String) async throws { _ = try await ask(6, .saying(text, in: room)) }

    func hears(_ text: String) async throws -> Bool {
        // The server writes all earlier publications before the answer to this request.
        _ = try await ask(7, .with { $0.room = "nowhere" })
        return heard.contains(text)
    }
}

extension Hermes_V1_RoomRequest {
    fileprivate static func entering(_ room: String) -> Hermes_V1_RoomRequest {
        .with {
            $0.room = room
            $0.enter = .init()
        }
    }

    fileprivate static func saying(_ text: String, in room: String) -> Hermes_V1_RoomRequest {
        .with {
            $0.room = room
            $0.text.text = text
        }
    }
}

private final class DelimitedGuest: NativeGuest {
    let client: DelimitedTestClient
    private(set) var heard: [String] = []

    init(client: DelimitedTestClient) { self.client = client }

    func ask(_ id: UInt64, _ request: Hermes_V1_RoomRequest) async throws -> Hermes_V1_Result {
        try await client.write(id, .room(request))
        while true {
            let packet = try await client.next()
            if case .ephemeral(let event) = packet.body { heard.append(event.room.text.text) }
            if case .result(let result) = packet.body, packet.id == id { return result }
        }
    }

    func isToldThatItIsOut() async throws -> Bool { try await client.ephemeral().room.isKicked }
}

private final class LiveRoomGuest: RoomGuest {
    let viewer: WireClient<LiveRoomFrameDecoder>
    let token: String
    let plane: TopicPlane
    private var heard: [LiveRoomFrame] = []
    private var isOut = false

    init(viewer: WireClient<LiveRoomFrameDecoder>, token: String, plane: TopicPlane) {
        self.viewer = viewer
        self.token = token
        self.plane = plane
    }

    /// The protocol has no answers. So the viewer enters an empty room and sends a mark. When the mark comes back, the
    /// server has handled everything before it.
    private func goOutside() async throws {
        let mark = LiveRoomTestFrames.raw(999)
        try await viewer.send(try LiveRoomTestFrames.enter(room: "outside", token: token), mark)
        while let frame = try await viewer.next(), frame != mark { heard.append(frame) }
    }

    func enter(_ room: String) async throws -> Bool {
        try await goOutside()
        guard let inside = RoomName(room)?.topic, let outside = RoomName("outside")?.topic else { return false }
        let others = await plane.subscriberCount(of: inside)
        try await viewer.send(try LiveRoomTestFrames.enter(room: room))
        while await plane.subscriberCount(of: outside) > 0 { await Task.yield() }
        isOut = await plane.subscriberCount(of: inside) == others
        return !isOut
    }

    func say(_ text: String, in room: String) async throws {
        guard !isOut else { return }
        try await viewer.send(try LiveRoomTestFrames.join("bob"), try LiveRoomTestFrames.text(text))
        _ = try await enter(room)
    }

    func hears(_ text: String) async throws -> Bool {
        guard !isOut else { return false }
        try await goOutside()
        return heard.contains { (try? LiveRoom_ChatMessage(wire: $0.body))?.text == text }
    }

    func isToldThatItIsOut() async throws -> Bool {
        while let frame = try await viewer.next(), frame.type != .kicked {}
        isOut = true
        return try await viewer.next() == nil
    }
}

private final class MQTTGuest: RoomGuest {
    let client: MQTTTestClient

    init(client: MQTTTestClient) { self.client = client }

    func enter(_ room: String) async throws -> Bool {
        try await client.subscribe("room/\(room)", qos: .atMostOnce, noLocal: true).reasons.allSatisfy { !$0.isFailure }
    }

    func say(_ text: String, in room: String) async throws {
        try await client.publish("room/\(room)", text, qos: .atLeastOnce)
    }

    func hears(_ text: String) async throws -> Bool {
        try await client.untilPong().contains { packet in
            guard case .publish(let publish) = packet else { return false }
            return (try? LiveRoom_ChatMessage(wire: publish.payload))?.text == text
        }
    }

    func isToldThatItIsOut() async throws -> Bool { false }
}

private final class CarriedGuest: NativeGuest {
    let client: MQTTTestClient
    private(set) var heard: [String] = []

    init(client: MQTTTestClient) { self.client = client }

    func ask(_ id: UInt64, _ request: Hermes_V1_RoomRequest) async throws -> Hermes_V1_Result {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.room = request
        let publish = MQTTPublish(
            topic: "hermes/v1/up",
            payload: try packet.wireBuffer(),
            qos: .atMostOnce,
            packetID: nil,
            retain: false,
            properties: []
        )
        try await client.send(.publish(publish))
        while true {
            let packet = try await next()
            if case .result(let result) = packet.body, packet.id == id { return result }
        }
    }

    private func next() async throws -> Hermes_V1_Packet {
        let packet = try Hermes_V1_Packet(wire: await client.publication().payload)
        if case .ephemeral(let event) = packet.body { heard.append(event.room.text.text) }
        return packet
    }

    func isToldThatItIsOut() async throws -> Bool {
        while true {
            let packet = try await next()
            if packet.ephemeral.room.isKicked { return true }
        }
    }
}

extension Hermes_V1_RoomEvent {
    fileprivate var isKicked: Bool {
        guard case .kicked = event else { return false }
        return true
    }
}

extension TopicAccess {
    /// Whether an identity may perform an action in a room, according to the current rules.
    fileprivate func may(_ identity: ClientIdentity, _ action: TopicAction, _ room: RoomName) -> Bool {
        current.bound(to: identity).may(action, room)
    }
}
