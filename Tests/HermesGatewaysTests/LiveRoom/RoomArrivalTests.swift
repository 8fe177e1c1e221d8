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

/// What it costs that viewers come and go has a bound, whoever they are.
@Suite(.timeLimit(.minutes(1))) struct RoomArrivalTests {
    typealias Frames = LiveRoomTestFrames

    @Test func `viewers who come and go in many rooms cause a bounded number of frames`() {
        for (rooms, viewers) in [(1_000, 10), (100, 100), (1, 10_000)] {
            var budget = ArrivalBudget()
            var frames = 0
            // Ten times in ten seconds, each of 10,000 viewers leaves its room and comes again.
            for second in 0..<10 {
                for _ in 0..<rooms * viewers where budget.tells(viewers, now: .seconds(second)) {
                    frames += 2 * viewers
                }
            }
            let most = ArrivalBudget.burst + 9 * ArrivalBudget.rate
            // The last one of each second may exceed what is left.
            #expect(frames <= most + 10 * 2 * viewers, "\(rooms) rooms")
            #expect(frames >= min(10 * rooms * viewers * 2 * viewers, most) - 2 * viewers, "\(rooms) rooms")
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
                        loop.arrivals = ArrivalBudget(rate: 0, burst: 1)
                        #expect(loop.tellsArrival(in: RoomName.lobby.topic))
                    }.get()
                }
            }
            func recover() async throws {
                for loop in server.environment.loops.all {
                    try await loop.eventLoop.submit { loop.arrivals = ArrivalBudget() }.get()
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

            // LiveRoom: a further join beyond the bound changes nothing about the first one.
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
