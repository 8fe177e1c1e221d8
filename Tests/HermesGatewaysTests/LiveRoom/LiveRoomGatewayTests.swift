// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The gateway over real sockets.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct LiveRoomGatewayTests {
    typealias Frames = LiveRoomTestFrames
    typealias Viewer = WireClient<LiveRoomFrameDecoder>

    func withRoom(
        _ room: LiveRoomSettings = LiveRoomSettings(),
        loops: Int = 1,
        limits: ConnectionLimits = ConnectionLimits(),
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        var settings = GatewaySettings()
        settings.room = room
        settings.limits = limits
        try await GatewayHarness.with(LiveRoomGateway.self, settings: settings, loops: loops, body)
    }

    /// Connects viewers and waits until each of them is in the room.
    func viewers(_ count: Int, in harness: GatewayHarness, receiveBuffer: Int32 = 131_072) async throws -> [Viewer] {
        var viewers: [Viewer] = []
        for _ in 0..<count {
            let viewer = try await Viewer.connect(port: harness.listener.port, tls: nil, receiveBuffer: receiveBuffer)
            let mark = Frames.raw(16, Array("viewer \(viewers.count)".utf8))
            try await viewer.send(mark)
            // Everyone gets the mark, including the new viewer. This shows that the new viewer is in the room.
            for other in viewers + [viewer] { #expect(try await other.next() == mark) }
            viewers.append(viewer)
        }
        return viewers
    }

    @Test(arguments: [1, 3])
    func `everyone gets what is said byte for byte`(loops: Int) async throws {
        try await withRoom(loops: loops) { harness in
            let viewers = try await viewers(4, in: harness)
            let said = [
                try Frames.join("ann"), try Frames.text("你好"), try Frames.gift(), Frames.raw(65_535, [1, 2, 3]),
                try Frames.text(""),
            ]
            for frame in said { try await viewers[0].send(frame) }
            for viewer in viewers {
                for frame in said { #expect(try await viewer.next() == frame) }
            }
        }
    }

    @Test func `unknown fields survive`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            // A join with an extra field 9 and the fields in another order.
            let body: [UInt8] = [0x1A, 1, 0x69, 0x12, 1, 0x61, 0x08, 7, 0x48, 1]
            try await viewers[0].send(Frames.raw(0, body))
            #expect(try await viewers[1].next() == Frames.raw(0, body))
        }
    }

    @Test func `every type but the heartbeat is forwarded`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            let sent = ([4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 65_535] as [UInt16]).map { Frames.raw($0, [0xFF]) }
            for frame in sent { try await viewers[0].send(frame) }
            for viewer in viewers {
                for frame in sent where frame.type != .heartbeat { #expect(try await viewer.next() == frame) }
            }
        }
    }

    @Test func `nobody who entered takes another's frame for the server's`() async throws {
        try await withRoom(loops: 2) { harness in
            let viewers = try await viewers(2, in: harness)
            let entered = try await harness.connect(LiveRoomFrameDecoder.self)
            let mark = Frames.raw(20)
            try await entered.send(try Frames.enter(), mark)
            for viewer in viewers + [entered] { #expect(try await viewer.next() == mark) }
            var kicked = LiveRoom_Kicked()
            kicked.code = 3000
            kicked.reason = "forged"
            var notice = LiveRoom_SystemNotice()
            notice.text = "forged"
            notice.serverTime = 1
            let forged = [
                try LiveRoomFrame(type: .notice, message: notice), try LiveRoomFrame(type: .kicked, message: kicked),
            ]
            for frame in forged + [Frames.raw(6, [1])] { try await viewers[0].send(frame) }
            for viewer in viewers { for frame in forged { #expect(try await viewer.next() == frame) } }
            for viewer in viewers + [entered] { #expect(try await viewer.next() == Frames.raw(6, [1])) }

            // A notice from the server is a text of the user "system" for viewers that have not sent ENTER.
            let real = try RoomAnnouncement.notice("maintenance", to: .lobby, at: Timestamp(rawValue: 5))
            #expect(harness.environment.loops.topicPlane.publish(real))
            for viewer in viewers {
                let frame = try #require(try await viewer.next())
                #expect(frame.type == .text)
                let text = try LiveRoom_ChatMessage(wire: frame.body)
                #expect(text.text == "maintenance" && text.user.name == "system")
            }
            let frame = try #require(try await entered.next())
            #expect(frame.type == .notice)
            #expect(try LiveRoom_SystemNotice(wire: frame.body).text == "maintenance")

            // At the end, only the viewer that has sent ENTER gets the reason.
            async let drained: Void = harness.listener.drain(within: .seconds(5))
            #expect(try await entered.next()?.type == .kicked)
            for viewer in viewers + [entered] { #expect(try await viewer.next() == nil) }
            await drained
        }
    }

    @Test func `after enter nothing but the room's types is forwarded`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            try await viewers[0].send(try Frames.enter())
            for type in [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15] as [UInt16] {
                try await viewers[0].send(Frames.raw(type, [0xFF]))
            }
            let text = try Frames.text("after")
            try await viewers[0].send(text)
            #expect(try await viewers[0].next() == text)
            #expect(try await viewers[1].next() == text)
        }
    }

    @Test func `who leaves is removed first`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(3, in: harness)
            let leave = try Frames.leave("ann")
            try await viewers[0].send(leave, try Frames.text("too late"))
            #expect(try await viewers[0].next() == nil)
            let text = try Frames.text("still here")
            try await viewers[1].send(text)
            for viewer in viewers.dropFirst() {
                #expect(try await viewer.next() == leave)
                #expect(try await viewer.next() == text)
            }
        }
    }

    @Test func `who is lost is announced`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            let join = try Frames.join("ann")
            try await viewers[0].send(join)
            #expect(try await viewers[1].next() == join)
            try await viewers[0].close()
            #expect(try await viewers[1].next() == (try Frames.leave("ann")))
        }
    }

    @Test func `who is silent is removed and only heartbeats count`() async throws {
        try await withRoom(LiveRoomSettings({ $0.silence = .milliseconds(600) })) { harness in
            let viewers = try await viewers(2, in: harness)
            let beating = Task { [channel = viewers[1].channel] in
                while !Task.isCancelled {
                    try await channel.writeAndFlush(Frames.heartbeat.bytes).get()
                    try await Task.sleep(for: .milliseconds(100))
                }
            }
            defer { beating.cancel() }
            // A text does not count as a heartbeat.
            let text = try Frames.text("hello")
            let talking = Task { [channel = viewers[0].channel] in
                while !Task.isCancelled {
                    try await channel.writeAndFlush(text.bytes).get()
                    try await Task.sleep(for: .milliseconds(100))
                }
            }
            defer { talking.cancel() }
            while let frame = try await viewers[0].next() { #expect(frame == text) }
            talking.cancel()
            // The other viewer is still in the room.
            let last = Frames.raw(99)
            try await viewers[1].send(last)
            while let frame = try await viewers[1].next(), frame != last { #expect(frame == text) }
        }
    }

    @Test func `application types are dropped where configured`() async throws {
        try await withRoom(LiveRoomSettings({ $0.applicationTypes = .drop })) { harness in
            let one = try await harness.connect(LiveRoomFrameDecoder.self)
            let text = try Frames.text("hi")
            try await one.send(Frames.raw(16), Frames.raw(65_535), text)
            #expect(try await one.next() == text)
        }
    }

    @Test func `an absurd length closes that connection alone`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            try await viewers[0].send(bytes: [0xFF, 0xFF, 0xFF, 0xFF, 2, 0])
            #expect(try await viewers[0].next() == nil)
            let text = try Frames.text("hi")
            try await viewers[1].send(text)
            #expect(try await viewers[1].next() == text)
        }
    }

    @Test func `rooms are apart`() async throws {
        try await withRoom { harness in
            let viewers = try await viewers(2, in: harness)
            try await viewers[0].send(try Frames.enter(room: "stage"))
            let onStage = try Frames.text("on stage")
            try await viewers[0].send(onStage)
            #expect(try await viewers[0].next() == onStage)
            let inLobby = try Frames.text("in the lobby")
            try await viewers[1].send(inLobby)
            #expect(try await viewers[1].next() == inLobby)
        }
    }

    @Test func `publications of other gateways arrive`() async throws {
        try await withRoom(loops: 2) { harness in
            let viewers = try await viewers(2, in: harness)
            let text = try Frames.text("from elsewhere")
            let publication = Publication(topic: RoomName.lobby.topic, payload: text.body, kind: .room(.said))
            #expect(harness.environment.loops.topicPlane.publish(publication))
            for viewer in viewers { #expect(try await viewer.next() == text) }
        }
    }

    // MARK: Accounts

    @Test func `who enters with a token is in the room, as a device of its account`() async throws {
        try await withRoom { harness in
            let login = try await harness.register("ann")
            let viewer = try await harness.connect(LiveRoomFrameDecoder.self)
            let text = try Frames.text("it is me")
            try await viewer.send(try Frames.enter(token: login.token), text)
            #expect(try await viewer.next() == text)
            let devices = harness.messenger.devices.attachedDevices(of: login.principal.user)
            #expect(devices.map(\.rawValue) == ["liveroom"])
            // Messages to the account do not wait for a device that does not show the inbox.
            try await viewer.close()
        }
    }

    @Test func `a wrong token is kicked out`() async throws {
        try await withRoom { harness in
            let viewer = try await harness.connect(LiveRoomFrameDecoder.self)
            try await viewer.send(try Frames.enter(token: "nonsense"), try Frames.text("never heard"))
            let frame = try #require(try await viewer.next())
            #expect(frame.type == .kicked)
            let kicked = try LiveRoom_Kicked(wire: frame.body)
            #expect(kicked.code == HermesError.Code.invalidToken.rawValue)
            #expect(try await viewer.next() == nil)
        }
    }

    @Test func `without anonymous access an account comes first`() async throws {
        try await withRoom(LiveRoomSettings({ $0.isAnonymousAllowed = false })) { harness in
            let login = try await harness.register("ann")
            let viewer = try await harness.connect(LiveRoomFrameDecoder.self)
            let text = try Frames.text("second")
            try await viewer.send(try Frames.text("first"), try Frames.enter(token: login.token), text)
            #expect(try await viewer.next() == text)
        }
    }

    @Test func `an account has as many viewers as it may have devices`() async throws {
        try await withRoom(loops: 2) { harness in
            let login = try await harness.register("ann")
            let limit = harness.messenger.accounts.maxDevices
            func enter(_ number: Int) async throws -> Viewer {
                let viewer = try await harness.connect(LiveRoomFrameDecoder.self)
                try await viewer.send(try Frames.enter(token: login.token, device: "viewer-\(number)"))
                return viewer
            }
            var viewers: [Viewer] = []
            for number in 0..<limit {
                let viewer = try await enter(number)
                let mark = Frames.raw(20, Array("\(number)".utf8))
                try await viewer.send(mark)
                // After everyone has the mark, no event loop still holds it for the next viewer.
                viewers.append(viewer)
                for viewer in viewers { #expect(try await viewer.next() == mark) }
            }
            let refused = try await enter(limit)
            let frame = try #require(try await refused.next())
            #expect(frame.type == .kicked)
            #expect(try LiveRoom_Kicked(wire: frame.body).code == HermesError.Code.deviceLimitReached.rawValue)
            #expect(try await refused.next() == nil)

            // A viewer that is already there may connect again, and a viewer that leaves makes room.
            let again = try await enter(0)
            let mark = Frames.raw(21)
            try await again.send(mark)
            for viewer in viewers.dropFirst() + [again] { #expect(try await viewer.next() == mark) }
            try await again.close()
            let devices = harness.messenger.devices
            while devices.attachedDevices(of: login.principal.user).count == limit {
                try Task.checkCancellation()
                await Task.yield()
            }
            let late = try await enter(limit)
            let last = Frames.raw(22)
            try await late.send(last)
            #expect(try await late.next() == last)
        }
    }

    @Test func `the same device replaces itself`() async throws {
        try await withRoom { harness in
            let login = try await harness.register("ann")
            let first = try await harness.connect(LiveRoomFrameDecoder.self)
            let mark = Frames.raw(20)
            try await first.send(try Frames.enter(token: login.token), mark)
            #expect(try await first.next() == mark)
            let second = try await harness.connect(LiveRoomFrameDecoder.self)
            try await second.send(try Frames.enter(token: login.token))
            #expect(try await first.next()?.type == .kicked)
            #expect(try await first.next() == nil)
            try await second.send(mark)
            #expect(try await second.next() == mark)
        }
    }

    @Test func `who is removed is told and the others stay`() async throws {
        try await withRoom(loops: 2) { harness in
            let login = try await harness.register("ann")
            let other = try await viewers(1, in: harness)[0]
            let viewer = try await harness.connect(LiveRoomFrameDecoder.self)
            let mark = Frames.raw(20)
            try await viewer.send(try Frames.enter(token: login.token), mark)
            #expect(try await viewer.next() == mark)
            #expect(try await other.next() == mark)
            let accounts = harness.environment.messenger.accounts
            let account = try #require(try await accounts.account(.id(login.principal.user)))
            let loops = harness.environment.loops
            let stage = try #require(RoomName("stage"))
            #expect(await loops.remove(RoomExpulsion(of: account, from: stage)) == 0)
            #expect(await loops.remove(RoomExpulsion(of: account, from: .lobby)) == 1)
            #expect(try await viewer.next()?.type == .kicked)
            #expect(try await viewer.next() == nil)
            #expect(await loops.remove(RoomExpulsion(of: account, from: .lobby)) == 0)
            try await other.send(mark)
            #expect(try await other.next() == mark)
        }
    }

    // MARK: Slow viewers

    @Test func `a viewer that does not read costs the others nothing`() async throws {
        var limits = ConnectionLimits()
        limits.outboundQueueBytes = 256 * 1024
        limits.requestsPerSecond = 1_000_000
        try await withRoom(LiveRoomSettings({ $0.silence = .seconds(3600) }), limits: limits) { harness in
            let viewers = try await viewers(3, in: harness, receiveBuffer: 16_384)
            try await viewers[2].channel.setOption(.autoRead, value: false).get()
            let text = try Frames.text(String(repeating: "x", count: 30_000))
            // This is far more than the socket buffers of both sides can hold.
            for _ in 0..<80 {
                for _ in 0..<3 { viewers[0].channel.write(text.bytes, promise: nil) }
                viewers[0].channel.flush()
                for _ in 0..<3 {
                    #expect(try await viewers[0].next() == text)
                    #expect(try await viewers[1].next() == text)
                }
            }
            let last = Frames.raw(77)
            try await viewers[0].send(last)
            // When the viewer reads again, it gets only whole frames: the frames that were not dropped, and then the
            // newest frames.
            try await viewers[2].channel.setOption(.autoRead, value: true).get()
            viewers[2].channel.read()
            var received = 0
            while let frame = try await viewers[2].next(), frame != last {
                #expect(frame == text)
                received += 1
            }
            #expect(received < 240)
        }
    }
}
