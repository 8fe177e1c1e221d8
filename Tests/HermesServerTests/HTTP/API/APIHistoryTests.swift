// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

/// History over HTTP follows the same rules as in every protocol.
@Suite("The history in the HTTP API", .inTurns, .timeLimit(.minutes(2)))
struct APIHistoryTests {
    private static func keeping(_ settings: inout ServerSettings) { settings.store.historyPeriod = .seconds(86_400) }

    private struct Page: Equatable {
        var count = 0
        var more: Bool?
        var status = 200
    }

    private struct World {
        let server: TestServer
        let api: APIClient
        var principals: [Principal] = []

        init(_ server: TestServer) async throws {
            self.server = server
            api = try await APIClient(server)
            let device = try #require(DeviceID("core"))
            for name in ["ann", "bob", "cat"] {
                let made = try await api.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
                #expect(made.status == 201)
                let nickName = try NickName(name)
                let account = try await server.messenger().accounts.account(.nickName(nickName))
                principals.append(Principal(user: try #require(account).id, nickName: nickName, device: device))
            }
        }

        func send(_ text: String, from sender: Int, to conversation: ConversationID) async throws {
            let draft = MessageDraft(
                conversation: conversation,
                clientID: nil,
                content: try MessageText.content(text)
            )
            let messages = try server.messenger().messages
            _ = try await withCheckedContinuation { continuation in
                messages.send(draft, from: principals[sender]) { continuation.resume(returning: $0) }
            }.get()
        }

        func read(_ query: String) async throws -> Page {
            let answer = try await api.send("GET", "/v1/users/ann/messages?\(query)")
            let more: Bool? = if case .boolean(let more)? = answer.body["more"] { more } else { nil }
            return Page(count: answer.body["messages"]?.array?.count ?? 0, more: more, status: answer.status)
        }
    }

    @Test
    func `a page has as many messages and bytes as in any protocol, and tells whether older ones follow`() async throws
    {
        try await withServer(configure: Self.keeping) { server in
            let world = try await World(server)
            let users = world.principals.map(\.user)
            let pair = ConversationID.direct(between: users[0], and: users[1])
            for number in 0..<520 { try await world.send("\(number)", from: 1, to: pair) }
            for _ in 0..<20 {
                let long = String(repeating: "x", count: 65_000)
                try await world.send(long, from: 2, to: .direct(between: users[0], and: users[2]))
            }
            for (query, count, more) in [
                ("with=bob", 100, true), ("with=bob&limit=1000", 500, true), ("with=bob&before=21&limit=20", 20, false),
                ("with=bob&before=1", 0, false), ("with=cat&limit=1000", 16, true), ("with=cat&before=5", 4, false),
                ("with=ann", 0, false),
            ] {
                let page = try await world.read(query)
                #expect(page == Page(count: count, more: more), "\(query)")
            }
        }
    }

    @Test
    func `groups are read by members alone, since they joined`() async throws {
        try await withServer(configure: Self.keeping) { server in
            let world = try await World(server)
            let users = world.principals.map(\.user)
            let groups = try server.messenger().groups
            let group = try await groups.apply(.create(name: "two", members: [users[2]]), by: world.principals[1])
            try await world.send("early", from: 1, to: .group(group.id))
            #expect(try await world.read("group=\(group.id.rawValue)").status == 403)
            #expect(try await world.read("group=77").status == 403)
            let change = MemberChanges(added: [users[0]])
            _ = try await groups.apply(.changeMembers(group.id, change), by: world.principals[1])
            try await world.send("late", from: 1, to: .group(group.id))
            #expect(try await world.read("group=\(group.id.rawValue)") == Page(count: 1, more: false))
            for query in [
                "group=0", "group=2147483648", "group=-1", "with=bob&group=1", "", "with=bob&before=0",
                "with=bob&limit=0", "with=bob&limit=1001",
            ] {
                #expect(try await world.read(query).status == 400, "\(query)")
            }
            for query in ["with=0", "with=2147483648", "with=nobody"] {
                #expect(try await world.read(query).status == 404, "\(query)")
            }
        }
    }

    @Test
    func `without a history there is none`() async throws {
        try await withServer { server in
            let world = try await World(server)
            let users = world.principals.map(\.user)
            try await world.send("hi", from: 1, to: .direct(between: users[0], and: users[1]))
            #expect(try await world.read("with=bob") == Page(count: 0, more: false))
        }
    }
}
