// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import SwiftProtobuf
import Synchronization
import Testing

@testable import HermesGateways

/// The cost of joins and leaves in rooms is bounded, for all kinds of viewers.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct RoomArrivalTests {
    typealias Frames = LiveRoomTestFrames

    private static func room(_ number: Int) throws -> TopicName { try #require(TopicName("room/r\(number)")) }

    private static func address(_ number: Int) -> CommitSource { .address("\(number)") }

    @Test func `viewers who come and go in many rooms cause a bounded number of frames`() throws {
        for (rooms, viewers) in [(1_000, 10), (100, 100), (1, 10_000)] {
            let budget = ArrivalBudget(loops: 1)
            var frames = 0
            // Each of 10,000 viewers leaves its room and joins it again, ten times in ten seconds.
            for second in 0..<10 {
                for room in try (0..<rooms).map(Self.room) {
                    for viewer in 0..<viewers
                    where budget.tells([viewers], in: room, by: Self.address(viewer), now: .seconds(second)) {
                        frames += 2 * viewers
                    }
                }
            }
            // A single room gets half of the budget.
            let most = (ArrivalBudget.burst + 9 * ArrivalBudget.rate) / (rooms == 1 ? 2 : 1)
            // The last join of each second may exceed the rest of the budget.
            #expect(frames <= most + 10 * 2 * viewers, "\(rooms) rooms")
            #expect(frames >= min(10 * rooms * viewers * 2 * viewers, most) / 4 * 3 - 2 * viewers, "\(rooms) rooms")
        }
    }

    @Test func `each loop is spared what the joins on all of them cause`() throws {
        let (loops, full) = (4, 2_000)
        let budget = ArrivalBudget(loops: loops)
        var frames = Array(repeating: 0, count: loops)
        // Almost all viewers of a room are on the same event loop.
        let audiences = (0..<loops).map { crowded in (0..<loops).map { $0 == crowded ? full : 3 } }
        for second in 0..<10 {
            for number in 0..<1_000 {
                let viewers = audiences[number % 16 == 0 ? 1 + number / 16 % 3 : 0]
                let (room, source) = (try Self.room(number % 97), Self.address(second * 1_000 + number))
                guard budget.tells(viewers, in: room, by: source, now: .seconds(second)) else { continue }
                for (loop, count) in viewers.enumerated() { frames[loop] += 2 * count }
            }
        }
        let most = ArrivalBudget.burst + 9 * ArrivalBudget.rate
        for (loop, count) in frames.enumerated() { #expect(count <= most + 10 * 2 * full, "loop \(loop)") }
        #expect(frames[0] >= most / 4 * 3, "the joins came from all loops")
    }

    @Test func `one address that comes and goes in a full room hides nobody's arrival`() throws {
        let budget = ArrivalBudget(loops: 2)
        let full = [10_000, 10_000]
        var told = 0
        for _ in 0..<1_000 where budget.tells(full, in: try Self.room(0), by: Self.address(0), now: .zero) { told += 1 }
        #expect(told > 0 && told * 20_000 <= ArrivalBudget.burst / ArrivalBudget.sourceParts + 20_000)
        #expect(budget.tells(full, in: try Self.room(0), by: Self.address(1), now: .zero), "the same room")
        #expect(budget.tells([5, 0], in: try Self.room(1), by: Self.address(2), now: .zero))
        #expect(!budget.tells([5, 0], in: try Self.room(1), by: Self.address(0), now: .zero))
        #expect(budget.tells([5, 0], in: try Self.room(1), by: Self.address(0), now: .seconds(5)))
    }

    @Test func `a room where very many come and go hides no arrivals in others`() throws {
        let budget = ArrivalBudget(loops: 1)
        for number in 0..<1_000 {
            _ = budget.tells([10_000], in: try Self.room(0), by: Self.address(number), now: .zero)
        }
        #expect(!budget.tells([10_000], in: try Self.room(0), by: Self.address(-1), now: .zero))
        #expect(budget.tells([10_000], in: try Self.room(1), by: Self.address(-1), now: .zero))
        // Now the viewers are in several rooms. The last part of the budget is only for sources that have used nothing.
        for number in 0..<1_000 {
            _ = budget.tells([10_000], in: try Self.room(number % 9), by: Self.address(number % 10), now: .zero)
        }
        #expect(!budget.tells([5], in: try Self.room(11), by: Self.address(3), now: .zero))
        #expect(budget.tells([5], in: try Self.room(11), by: Self.address(-2), now: .zero))
    }

    @Test func `viewers on other loops count, those of MQTT too`() async throws {
        try await GatewayHarness.with(loops: 2) { server in
            var viewers: [WireClient<LiveRoomFrameDecoder>] = []
            for number in 0..<8 {
                let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
                try await viewer.send(try Frames.join("v\(number)"))
                while try await viewer.next() != Frames.join("v\(number)") {}
                viewers.append(viewer)
            }
            let watcher = try await MQTTTestClient.open(port: server.port("mqtt"), .v5)
            try await watcher.send(.connect(MQTTConnect(version: .v5, clientID: "watcher")))
            _ = try await watcher.next()
            _ = try await watcher.subscribe("room/+")
            for loop in server.environment.loops.all {
                let counts = try await loop.eventLoop.submit { loop.topics.audience(of: RoomName.lobby.topic) }.get()
                #expect(counts.count == 2 && counts.reduce(0, +) == 9)
            }
            for viewer in viewers.dropFirst() { try await viewer.send(try Frames.leave("gone")) }
            let loop = server.environment.loops.all[0]
            func sum() async throws -> Int {
                try await loop.eventLoop.submit { loop.topics.audience(of: RoomName.lobby.topic).reduce(0, +) }.get()
            }
            while try await sum() > 2 { await Task.yield() }
        }
    }

    @Test func `joins and leaves over MQTT have the same bound, wills too`() async throws {
        try await GatewayHarness.with(loops: 1) { server in
            func mqtt(_ name: String, will: MQTTWill? = nil) async throws -> MQTTTestClient {
                let client = try await MQTTTestClient.open(port: server.port("mqtt"), .v5)
                var connect = MQTTConnect(version: .v5, clientID: name)
                connect.will = will
                try await client.send(.connect(connect))
                _ = try await client.next()
                return client
            }
            func event(_ type: LiveRoomFrameType) -> MQTTProperties {
                [.userProperty("liveroom-type", "\(type.rawValue)")]
            }
            let watcher = try await mqtt("watcher")
            _ = try await watcher.subscribe("room/hall")
            let member = try Frames.join("ann").body
            let leave = MQTTWill(topic: "room/hall", payload: member, properties: event(.leave))
            let (first, second) = (try await mqtt("first"), try await mqtt("second", will: leave))
            func tell(
                _ type: LiveRoomFrameType,
                _ id: UInt16,
                by client: MQTTTestClient
            ) async throws -> MQTTReasonCode? {
                try await client.send(
                    .publish(
                        MQTTPublish(
                            topic: "room/hall",
                            payload: member,
                            qos: .atLeastOnce,
                            packetID: id,
                            properties: event(type)
                        )
                    )
                )
                guard case .puback(let answer) = try await client.next() else { return nil }
                return answer.reason
            }
            #expect(try await tell(.join, 1, by: first) == .success)
            let loop = server.environment.loops.all[0]
            let hall = try #require(TopicName("room/hall"))
            try await loop.eventLoop.submit {
                loop.arrivals = ArrivalBudget(loops: 1, rate: 0, burst: 1)
                #expect(loop.tellsArrival(in: hall, by: .server))
            }.get()
            #expect(try await tell(.join, 2, by: first) == .quotaExceeded)
            // The payment for the first join also covered a leave.
            #expect(try await tell(.leave, 3, by: first) == .success)
            #expect(try await tell(.leave, 4, by: first) == .quotaExceeded)
            try await second.drop()
            while server.environment.loops.all.map(\.connectionCount).reduce(0, +) > 2 { await Task.yield() }
            try await first.publish("room/hall", "said")
            var types: [String] = []
            while types.last != "" {
                let publication = try await watcher.publication()
                types.append(publication.properties.userProperties.first { $0.name == "liveroom-type" }?.value ?? "")
            }
            #expect(types == ["0", "1", ""])
        }
    }

    @Test func `a join beyond the bound is not told, nor is its leave, but what is said is`() async throws {
        try await GatewayHarness.with(loops: 1) { server in
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            try await viewer.send(try Frames.join("watcher"))
            #expect(try await viewer.next() == Frames.join("watcher"))
            func exhaust() async throws {
                for loop in server.environment.loops.all {
                    try await loop.eventLoop.submit {
                        loop.arrivals = ArrivalBudget(loops: 1, rate: 0, burst: 1)
                        #expect(loop.tellsArrival(in: RoomName.lobby.topic, by: .server))
                    }.get()
                }
            }
            func recover() async throws {
                for loop in server.environment.loops.all {
                    try await loop.eventLoop.submit { loop.arrivals = ArrivalBudget(loops: 1) }.get()
                }
            }
            func inLobby(_ request: Hermes_V1_RoomRequest.OneOf_Request) -> Hermes_V1_Packet.OneOf_Body {
                .room(
                    .with {
                        $0.room = "lobby"
                        $0.request = request
                    }
                )
            }

            // The native protocol.
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            try await exhaust()
            let entered = try await ann.ask(2, inLobby(.enter(.init())))
            #expect(entered.room.memberCount == 2)
            try await ann.ask(3, inLobby(.text(.with { $0.text = "one" })))
            try await ann.ask(4, inLobby(.leave(.init())))
            try await ann.ask(5, inLobby(.enter(.init())))
            try await recover()
            try await ann.ask(6, inLobby(.leave(.init())))
            try await ann.ask(7, inLobby(.enter(.init())))
            try await exhaust()
            try await ann.ask(8, inLobby(.leave(.init())))

            // In LiveRoom, another join above the bound does not affect the first join.
            let other = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            try await other.send(
                try Frames.join("eve"),
                try Frames.text("two", from: "eve"),
                try Frames.leave("eve")
            )
            let frames = try await [viewer.next(), viewer.next(), viewer.next(), viewer.next()]
            #expect(frames[0]?.type == .text && frames[1]?.type == .join)
            let last = try Frames.text("two", from: "eve")
            #expect(frames[2]?.type == .leave && frames[3] == last)

            // Nobody saw eve's second join, so the leave after it is not announced. A leave without a join is not
            // announced either.
            let third = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            try await third.send(try Frames.text("three", from: "max"), try Frames.leave("max"))
            #expect(try await viewer.next() == Frames.text("three", from: "max"))
            for gone in [other, third] { while try await gone.next() != nil {} }
            let fourth = try await WireClient<LiveRoomFrameDecoder>.connect(port: server.port("liveroom"))
            try await fourth.send(try Frames.text("four", from: "tom"))
            #expect(try await viewer.next() == Frames.text("four", from: "tom"))
        }
    }

    @Test func `a join that is not forwarded takes nothing from the leave of the one before`() throws {
        var session = LiveRoomConnection(rules: LiveRoomRules(LiveRoomSettings()))
        _ = session.accepted()
        #expect(session.frameReceived(try Frames.join("ann")) == .publish)
        #expect(session.frameReceived(try Frames.join("bob")) == .publish)
        session.joinRefused()
        guard case .leave(let departure?) = session.viewerLost() else {
            Issue.record("no departure")
            return
        }
        let joined = try Frames.join("ann").body
        #expect(departure.announcement == joined)
    }

    @Test func `who enters rooms causes a bounded number of counts, and learns the last one`() async throws {
        let clock = ManualClock()
        let asked = Mutex(0)
        let counts = RoomCounts(
            uptime: { clock.uptime() },
            count: { _ in
                asked.withLock { $0 += 1 }
                return 7
            }
        )
        for _ in 0..<10 {
            for number in 0..<2_000 {
                let room = try #require(RoomName("room-\(number)"))
                _ = await counts.members(of: room, here: 1)
            }
            clock.advance(by: .seconds(1))
        }
        #expect(asked.withLock { $0 } == RoomCounts.burst + 9 * RoomCounts.rate)
        clock.advance(by: .seconds(1))
        #expect(await counts.members(of: .lobby, here: 1) == 7)
        let full = asked.withLock { $0 }
        for number in 0..<RoomCounts.burst {
            _ = await counts.members(of: try #require(RoomName("other-\(number)")), here: 1)
        }
        #expect(await counts.members(of: .lobby, here: 1) == 7, "the last one")
        #expect(await counts.members(of: .lobby, here: 9) == 9, "there are more on one loop")
        #expect(await counts.members(of: try #require(RoomName("new")), here: 3) == 3)
        #expect(asked.withLock { $0 } <= full + RoomCounts.burst)
    }
}
