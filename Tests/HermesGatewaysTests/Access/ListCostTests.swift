// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// A client that requests a list pays for the rows that are read, not for the rows that are shown.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ListCostTests {
    /// With this limit, a list with these rows throttles the client for seconds. A list without them does not throttle.
    private static let unitsPerSecond = 120
    private static let rows = 600

    private static func settings() -> GatewaySettings {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = unitsPerSecond
        return settings
    }

    /// Makes an account block other accounts, without a request.
    private static func block(by uid: UInt32, _ store: MemoryStore, _ server: GatewayHarness) async throws {
        let principal = try await server.principal(uid)
        for number in 0..<rows {
            let name = try NickName("blocked\(number)")
            let new = NewAccount(nickName: name, password: PasswordHash(phc: "$none$"))
            let peer = try await store.create(new, now: Timestamp(rawValue: 0)).id
            let operation = WriteOperation.contact(.block, by: principal, peer: peer, message: "")
            _ = try store.commit([operation], now: Timestamp(rawValue: 0))
        }
    }

    @Test func `a page of friends is paid for by the rows of the whole list, which need not be friends`() async throws {
        let store = MemoryStore()
        try await GatewayHarness.with(settings: Self.settings(), store: store) { server in
            let client = try await server.impb()
            let uid = try await client.register("ann").uid
            _ = try await client.logIn("ann")
            func friends(_ seq: UInt32) async throws -> Int {
                var message = IMPB_Friend_msg()
                message.cmd = .friendList
                message.body = try IMPB_get_friend_list_req.with { $0.limit = 10 }.wireBytes()
                var common = IMPB_Common()
                common.method = .friend
                common.body = try message.wireBytes()
                try await client.write(.request, seq, common)
                return try IMPB_user_info_list_res(wire: await client.reply(seq).respon).userList.count
            }
            #expect(try await friends(3) == 0)
            #expect(try await server.throttledCount() == 0)
            try await Self.block(by: uid, store, server)
            #expect(try await friends(4) == 0)
            #expect(try await server.throttledCount() == 1)
        }
    }

    @Test func `a page of contacts and requests is paid for by its rows`() async throws {
        let store = MemoryStore()
        try await GatewayHarness.with(settings: Self.settings(), store: store) { server in
            let client = try await server.delimited()
            let uid = try await client.register("ann").uid
            func contacts(_ id: UInt64) async throws -> Int {
                let list = Hermes_V1_ContactRequest.with { $0.list = .with { $0.limit = 500 } }
                return try await client.ask(id, .contact(list)).contacts.contacts.count
            }
            #expect(try await contacts(2) == 0)
            #expect(try await server.throttledCount() == 0)
            try await Self.block(by: uid, store, server)
            #expect(try await contacts(3) == 500)
            #expect(try await server.throttledCount() == 1)
        }
    }

    @Test func `a page of conversations is paid for by its rows`() async throws {
        let store = MemoryStore()
        try await GatewayHarness.with(settings: Self.settings(), store: store) { server in
            let client = try await server.delimited()
            let uid = try await client.register("ann").uid
            func conversations(_ id: UInt64) async throws -> Int {
                let list = Hermes_V1_ListConversations.with { $0.limit = .max }
                return try await client.ask(id, .conversations(list)).conversations.conversations.count
            }
            #expect(try await conversations(2) == 0)
            #expect(try await server.throttledCount() == 0)
            let principal = try await server.principal(uid)
            for number in 0..<Self.rows {
                let new = NewAccount(nickName: try NickName("peer\(number)"), password: PasswordHash(phc: "$none$"))
                let peer = try await store.create(new, now: Timestamp(rawValue: 0)).id
                let draft = MessageDraft(
                    conversation: .direct(between: principal.user, and: peer),
                    clientID: nil,
                    content: try MessageText.content("hi")
                )
                _ = try await withCheckedContinuation { continuation in
                    server.messenger.messages.send(draft, from: principal) { continuation.resume(returning: $0) }
                }.get()
            }
            #expect(try await conversations(3) == Self.rows)
            #expect(try await server.throttledCount() == 1)
        }
    }
}
