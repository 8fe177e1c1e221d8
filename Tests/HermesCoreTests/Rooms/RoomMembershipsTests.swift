// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("Members of rooms, and who removes them") struct RoomMembershipsTests {
    private typealias Rooms = RoomMemberships<Int>

    private static let ann = RoomMember(level: 3, name: "ann", iconURL: "icon")

    private static func room(_ name: String) throws -> RoomName { try #require(RoomName(name)) }

    private static func enter(
        _ rooms: inout Rooms,
        _ room: RoomName,
        as member: RoomMember = ann,
        mayHear: Bool = true,
        mayTalk: Bool = true
    ) throws -> RoomEvent.Content? {
        try rooms.enter(room, as: member, mayHear: mayHear, isTold: mayTalk) { 7 }
    }

    @Test
    func `a member comes, talks and goes; the others are told`() throws {
        var rooms = Rooms()
        #expect(try Self.enter(&rooms, .lobby) == .joined(Self.ann))
        #expect(rooms.names == [.lobby] && !rooms.isEmpty)
        #expect(rooms[.lobby]?.held == 7 && rooms[.lobby]?.member == Self.ann)
        #expect(try rooms.speaker(in: .lobby, mayTalk: true) == Self.ann)
        let left = try rooms.leave(.lobby)
        #expect(left.held == 7 && left.farewell == .left(Self.ann))
        #expect(rooms.isEmpty && rooms[.lobby] == nil)
    }

    @Test
    func `who may only listen comes and goes unannounced, even if it may talk by then`() throws {
        var rooms = Rooms()
        #expect(try Self.enter(&rooms, .lobby, mayTalk: false) == nil)
        let refusal = #expect(throws: HermesError.self) { try rooms.speaker(in: .lobby, mayTalk: false) }
        #expect(refusal?.code == .forbidden && refusal?.message.contains("say anything") == true)
        #expect(try rooms.speaker(in: .lobby, mayTalk: true) == Self.ann)
        #expect(try rooms.leave(.lobby).farewell == nil)
    }

    @Test
    func `who is not in a room can neither talk nor leave`() throws {
        var rooms = Rooms()
        _ = try Self.enter(&rooms, try Self.room("hall"))
        let silent = #expect(throws: HermesError.self) { try rooms.speaker(in: .lobby, mayTalk: true) }
        let leaving = #expect(throws: HermesError.self) { try rooms.leave(.lobby) }
        #expect([silent?.code, leaving?.code] == [.forbidden, .forbidden])
        #expect([silent, leaving].allSatisfy { $0?.message == "enter the room first" })
        #expect(rooms.names == [try Self.room("hall")])
    }

    @Test
    func `what is refused changes and holds nothing`() throws {
        var rooms = Rooms()
        _ = try Self.enter(&rooms, .lobby)
        let hall = try Self.room("hall")
        let long = RoomMember(name: String(repeating: "x", count: 257))
        var held = 0
        func code(_ room: RoomName, _ member: RoomMember = Self.ann, mayHear: Bool = true) -> HermesError.Code? {
            let error = #expect(throws: HermesError.self) {
                try rooms.enter(room, as: member, mayHear: mayHear, isTold: true) {
                    held += 1
                    return held
                }
            }
            return error?.code
        }
        #expect(code(.lobby) == .forbidden)
        #expect(code(hall, mayHear: false) == .forbidden)
        #expect(code(hall, long) == .tooLarge)
        #expect(held == 0 && rooms.names == [.lobby] && rooms[.lobby]?.held == 7)
    }

    @Test
    func `one connection is in a hundred rooms at most, and may come again where it left`() throws {
        var rooms = Rooms()
        for number in 1...Rooms.limit { _ = try Self.enter(&rooms, try Self.room("\(number)")) }
        #expect(Rooms.limit == 100)
        #expect(throws: HermesError.self) { try Self.enter(&rooms, .lobby) }
        _ = try rooms.leave(try Self.room("50"))
        #expect(try Self.enter(&rooms, .lobby) != nil)
    }

    @Test
    func `all rooms are left at once`() throws {
        var rooms = Rooms()
        _ = try Self.enter(&rooms, .lobby)
        _ = try Self.enter(&rooms, try Self.room("hall"), mayTalk: false)
        let left = rooms.leaveAll().sorted { $0.room.rawValue < $1.room.rawValue }
        #expect(left.map(\.room.rawValue) == ["hall", "lobby"])
        #expect(left.map(\.membership.farewell) == [nil, .left(Self.ann)])
        #expect(rooms.isEmpty)
        #expect(rooms.leaveAll().isEmpty)
    }

    @Test
    func `an operator removes one account, by its number or its proved name, or everybody`() throws {
        let id = try #require(UserID(7))
        let account = Account(id: id, nickName: try NickName("Ann"), createdAt: Timestamp(rawValue: 0))
        let one = RoomExpulsion(of: account, from: .lobby)
        #expect(one.means(id) && !one.means(UserID(8)) && !one.means(nil))
        #expect(one.means(userName: account.nickName.key))
        #expect(!one.means(userName: "bob") && !one.means(userName: nil))
        let all = RoomExpulsion(of: nil, from: .lobby)
        #expect(all.means(id) && all.means(nil) && all.means(userName: "bob") && all.means(userName: nil))
    }

    @Test
    func `every protocol tells the same reason`() {
        #expect(RoomRemoval.byOperator == RoomRemoval(.forbidden, "an operator decided so"))
        #expect(RoomRemoval.forbidden(.lobby) == RoomRemoval(BoundTopicRules.refusal(.subscribe, .lobby)))
    }
}
