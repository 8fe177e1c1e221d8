// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Tests every event in every state of a viewer's session.
@Suite struct LiveRoomSessionTests {
    typealias Frames = LiveRoomTestFrames

    let lobby: RoomName
    let stage: RoomName
    let principal: Principal
    let join: LiveRoomFrame
    let kick = RoomRemoval(.forbidden, "go")

    init() throws {
        lobby = try #require(RoomName("lobby"))
        stage = try #require(RoomName("stage"))
        principal = Principal(
            user: try #require(UserID(7)),
            nickName: try Frames.nickName("ann"),
            device: try #require(DeviceID("liveroom"))
        )
        join = try Frames.join("ann")
    }

    func inside(_ change: (inout LiveRoomRules) -> Void = { _ in }) -> LiveRoomConnection {
        var rules = LiveRoomRules(room: lobby)
        change(&rules)
        var session = LiveRoomConnection(rules: rules)
        #expect(session.accepted() == .enter(lobby))
        return session
    }

    func outside() -> LiveRoomConnection {
        LiveRoomConnection(rules: LiveRoomRules(room: lobby, requiresAccount: true))
    }

    func entering(wasInside: Bool = true) throws -> LiveRoomConnection {
        var session = wasInside ? inside() : outside()
        let entry = LiveRoomEntry(room: stage, token: "secret", device: principal.device)
        #expect(session.frameReceived(try Frames.enter(room: "stage", token: "secret")) == .checkToken(entry))
        #expect(session.state == .entering(stage, wasInside: wasInside))
        return session
    }

    func entered() throws -> LiveRoomConnection {
        var session = inside()
        #expect(session.frameReceived(try Frames.enter()) == .move(nil, to: lobby))
        return session
    }

    func ended() -> LiveRoomConnection {
        var session = inside()
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: nil)))
        return session
    }

    // MARK: Accepted

    @Test func `a connection belongs to its listener's room from the start`() {
        let session = inside()
        #expect(session.state == .inside)
        #expect(session.room == lobby)
        #expect(session.principal == nil)
    }

    @Test func `where an account is needed it is in no room`() {
        var session = outside()
        #expect(session.accepted() == .ignore(.outside))
        #expect(session.state == .outside)
    }

    @Test func `accepted twice does nothing`() throws {
        var session = inside()
        #expect(session.accepted() == .ignore(.outside))
        var entering = try entering()
        #expect(entering.accepted() == .ignore(.outside))
        var ended = ended()
        #expect(ended.accepted() == .ignore(.outside))
        #expect(ended.state == .ended)
    }

    // MARK: Frames inside

    @Test func `what viewers say is forwarded`() throws {
        for frame in [
            join, try Frames.text("hi"), try Frames.gift(), try Frames.text(""), Frames.raw(16), Frames.raw(65_535),
        ] {
            var session = inside()
            #expect(session.frameReceived(frame) == .publish)
            #expect(session.state == .inside)
        }
    }

    @Test(arguments: [0, 1, 2, 3] as [UInt16])
    func `what does not parse is not forwarded`(type: UInt16) {
        var session = inside()
        #expect(session.frameReceived(Frames.raw(type)) == .ignore(.badBody))
        #expect(session.frameReceived(Frames.raw(type, [0x08, 0x07])) == .ignore(.badBody))
        #expect(session.state == .inside)
    }

    @Test(arguments: [[], Array("this is a heartBeat message ".utf8), [0xFF]] as [[UInt8]])
    func `a heartbeat is a sign of life whatever its body`(body: [UInt8]) {
        var session = inside()
        #expect(session.frameReceived(Frames.raw(8, body)) == .live)
    }

    @Test(arguments: [4, 5] as [UInt16])
    func `after enter what only the server sends is ignored`(type: UInt16) throws {
        var session = try entered()
        #expect(session.frameReceived(Frames.raw(type)) == .ignore(.serverType))
    }

    @Test(arguments: [6, 7, 10, 11, 12, 13, 14, 15] as [UInt16])
    func `after enter types without meaning are ignored`(type: UInt16) throws {
        var session = try entered()
        #expect(session.frameReceived(Frames.raw(type)) == .ignore(.unknownType))
    }

    @Test(arguments: [4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 65_535] as [UInt16])
    func `before enter every other type is the application's`(type: UInt16) {
        var session = inside()
        #expect(session.frameReceived(Frames.raw(type, [0xFF])) == .publish)
        var dropping = inside { $0.forwardsApplicationTypes = false }
        #expect(dropping.frameReceived(Frames.raw(type)) == .ignore(.applicationType))
        // For every type, frames from viewers are dropped before frames from the server.
        #expect(
            LiveRoomTranslation.publication(of: Frames.raw(type), to: lobby.topic, sender: nil).dropClass < .control
        )
    }

    @Test func `entering counts even if it fails`() throws {
        var session = inside()
        #expect(!session.hasEntered)
        _ = session.frameReceived(Frames.raw(9, [0xFF]))
        #expect(session.hasEntered)
    }

    @Test func `application types can be switched off`() {
        var session = inside { $0.forwardsApplicationTypes = false }
        #expect(session.frameReceived(Frames.raw(16)) == .ignore(.applicationType))
        #expect(session.frameReceived(Frames.raw(65_535)) == .ignore(.applicationType))
    }

    @Test func `leave is announced with the viewer's own bytes`() throws {
        var session = inside()
        let leave = try Frames.leave("ann")
        let departure = LiveRoomDeparture(room: lobby, announcement: leave.body, isOfJoin: false)
        #expect(session.frameReceived(leave) == .leave(departure))
        #expect(session.state == .ended)
        var joined = inside()
        _ = joined.frameReceived(try Frames.join("ann"))
        #expect(joined.frameReceived(leave) == .leave(LiveRoomDeparture(room: lobby, announcement: leave.body)))
    }

    // MARK: Enter

    @Test func `enter without a token changes the room`() throws {
        var session = inside()
        _ = session.frameReceived(join)
        let move = session.frameReceived(try Frames.enter(room: "stage"))
        #expect(move == .move(LiveRoomDeparture(room: lobby, announcement: join.body), to: stage))
        #expect(session.room == stage)
        // The join belonged to the other room.
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: stage, announcement: nil)))
    }

    @Test func `entering the same room leaves nothing`() throws {
        var session = inside()
        _ = session.frameReceived(join)
        #expect(session.frameReceived(try Frames.enter()) == .move(nil, to: lobby))
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: join.body)))
    }

    @Test func `enter with a good token binds the account`() throws {
        var session = try entering()
        #expect(session.entryAccepted(principal) == .move(LiveRoomDeparture(room: lobby, announcement: nil), to: stage))
        #expect(session.principal == principal)
        #expect(session.state == .inside)
        #expect(session.frameReceived(try Frames.text("hi")) == .publish)
    }

    @Test func `from outside nobody leaves`() throws {
        var session = try entering(wasInside: false)
        #expect(session.entryAccepted(principal) == .move(nil, to: stage))
        #expect(session.room == stage)
    }

    @Test func `a refused token ends the session`() throws {
        var session = inside()
        _ = session.frameReceived(join)
        _ = session.frameReceived(try Frames.enter(room: "stage", token: "secret"))
        let departure = LiveRoomDeparture(room: lobby, announcement: join.body)
        #expect(session.entryRefused(kick) == .kick(kick, departure))
        #expect(session.state == .ended)

        var stranger = try entering(wasInside: false)
        #expect(stranger.entryRefused(kick) == .kick(kick, nil))
    }

    @Test func `bad entries are refused`() throws {
        let long = String(repeating: "x", count: 257)
        let entries: [LiveRoomFrame] = [
            Frames.raw(9, [0xFF]),
            try Frames.enter(room: "no spaces"),
            try Frames.enter(room: String(repeating: "r", count: 65)),
            try Frames.enter(token: long),
            try Frames.enter(token: "t", device: "with space"),
            try Frames.enter(token: "t", device: long),
        ]
        for frame in entries {
            var session = inside()
            guard case .kick(_, LiveRoomDeparture(room: lobby, announcement: nil)) = session.frameReceived(frame) else {
                Issue.record("not refused: \(frame)")
                continue
            }
            #expect(session.state == .ended)
        }
    }

    @Test func `a room or a device whose name is too long is refused with a number of its own`() throws {
        for (frame, code) in [
            (try Frames.enter(room: "no spaces"), HermesError.Code.invalidArgument),
            (try Frames.enter(room: String(repeating: "r", count: 65)), .tooLarge),
            (try Frames.enter(token: "t", device: "with space"), .invalidArgument),
            (try Frames.enter(token: "t", device: String(repeating: "d", count: 56)), .tooLarge),
        ] {
            var session = outside()
            guard case .kick(let kick, nil) = session.frameReceived(frame) else {
                Issue.record("not refused: \(frame)")
                continue
            }
            #expect(kick.code == code)
        }
    }

    @Test func `an account cannot be left out`() throws {
        var session = outside()
        guard case .kick(let kick, nil) = session.frameReceived(try Frames.enter()) else {
            Issue.record("not refused")
            return
        }
        #expect(kick.code == .notAuthenticated)
    }

    @Test func `the device never is that of another protocol`() throws {
        var session = inside()
        guard
            case .checkToken(let entry) = session.frameReceived(try Frames.enter(token: "t", device: "phone"))
        else {
            Issue.record("no check")
            return
        }
        #expect(entry.device.rawValue == "liveroom:phone")
        #expect(entry.room == lobby)
    }

    // MARK: Outside

    @Test func `outside nothing is forwarded`() throws {
        for frame in [join, try Frames.text("hi"), try Frames.gift(), Frames.raw(4), Frames.raw(6), Frames.raw(16)] {
            var session = outside()
            #expect(session.frameReceived(frame) == .ignore(.outside))
        }
        var session = outside()
        #expect(session.frameReceived(Frames.raw(8)) == .live)
        #expect(session.frameReceived(try Frames.leave("ann")) == .leave(nil))
        #expect(session.state == .ended)
    }

    @Test func `answers without a question do nothing`() {
        for var session in [inside(), outside(), ended()] {
            let state = session.state
            #expect(session.entryAccepted(principal) == .ignore(.ended))
            #expect(session.entryRefused(kick) == .ignore(.ended))
            #expect(session.state == state)
            #expect(session.principal == nil)
        }
    }

    // MARK: Entering and ended

    @Test(arguments: [0, 1, 2, 3, 4, 6, 8, 9, 16] as [UInt16])
    func `frames that cannot come`(type: UInt16) throws {
        var entering = try entering()
        #expect(entering.frameReceived(Frames.raw(type)) == .ignore(.entering))
        var ended = ended()
        #expect(ended.frameReceived(Frames.raw(type)) == .ignore(.ended))
        #expect(ended.state == .ended)
    }

    // MARK: Going

    @Test func `a viewer that is lost is announced by its join`() throws {
        var session = inside()
        _ = session.frameReceived(join)
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: join.body)))
        #expect(session.viewerLost() == .ignore(.ended))
    }

    @Test func `of a long join, level and name are kept for the leave`() throws {
        var info = LiveRoom_UserInfo()
        info.level = 7
        info.name = "ann"
        info.iconURL = ""
        let leave = try info.wireBuffer()
        info.iconURL = "https://example.org/" + String(repeating: "x", count: 1_100)
        let long = try LiveRoomFrame(type: .join, body: try info.wireBuffer())
        var session = inside()
        #expect(session.frameReceived(join) == .publish)
        #expect(session.frameReceived(long) == .publish)
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: leave)))
    }

    @Test func `a join whose name is too long is not forwarded, and the earlier join stays`() throws {
        var info = LiveRoom_UserInfo()
        info.level = 1
        info.name = String(repeating: "x", count: 1_100)
        info.iconURL = ""
        let long = try LiveRoomFrame(type: .join, body: try info.wireBuffer())
        var session = inside()
        #expect(session.frameReceived(join) == .publish)
        #expect(session.frameReceived(long) == .ignore(.badBody))
        #expect(session.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: join.body)))
    }

    @Test func `removal in every state`() throws {
        var inside = inside()
        _ = inside.frameReceived(join)
        #expect(inside.removalDecided(kick) == .kick(kick, LiveRoomDeparture(room: lobby, announcement: join.body)))
        var outside = outside()
        #expect(outside.removalDecided(kick) == .kick(kick, nil))
        var entering = try entering()
        #expect(entering.removalDecided(kick) == .kick(kick, LiveRoomDeparture(room: lobby, announcement: nil)))
        #expect(entering.entryAccepted(principal) == .ignore(.ended))
        var stranger = try self.entering(wasInside: false)
        #expect(stranger.removalDecided(kick) == .kick(kick, nil))
        var ended = ended()
        #expect(ended.removalDecided(kick) == .ignore(.ended))
    }

    @Test func `loss in every state`() throws {
        var outside = outside()
        #expect(outside.viewerLost() == .leave(nil))
        var entering = try entering()
        #expect(entering.viewerLost() == .leave(LiveRoomDeparture(room: lobby, announcement: nil)))
        #expect(entering.state == .ended)
        var ended = ended()
        #expect(ended.viewerLost() == .ignore(.ended))
    }
}
