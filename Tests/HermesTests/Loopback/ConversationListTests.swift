// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import Testing

/// The list of conversations on a new device, tested with the client and a whole server.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct ConversationListTests {
    private static func client(
        _ device: String,
        _ server: TestServer,
        over carrier: Carrier
    ) throws -> HermesClient {
        try HermesClient(
            HermesClient.Configuration(
                server: carrier.address(of: server),
                device: DeviceDescription(id: device)
            )
        )
    }

    private static func register(
        _ name: String,
        _ server: TestServer,
        over carrier: Carrier
    ) async throws -> (HermesClient, UserID) {
        let client = try client("first", server, over: carrier)
        return (client, try await client.logIn(.register(nickName: name, password: "secret-\(name)")).uid)
    }

    /// Returns all conversations, fetched in pages of this size, as texts such as "bob 3 of 3".
    private static func list(_ client: HermesClient, by limit: Int = 100) async throws -> [String] {
        var all: [ConversationSummary] = []
        while true {
            let page = try await client.conversations(after: all.last?.conversation, limit: limit)
            #expect(page.count <= limit)
            if page.isEmpty { break }
            all += page
        }
        #expect(Set(all.map(\.conversation)).count == all.count, "each once")
        #expect(all.allSatisfy { ($0.lastDate != nil) == ($0.lastSeq > 0) })
        return all.map { "\($0.name) \($0.unread) of \($0.lastSeq)" }
    }

    @Test(arguments: Surroundings.all)
    func `a new device sees the conversations, and what is unread falls and rises on every device`(
        surroundings: Surroundings
    ) async throws {
        try await withServer(store: surroundings.store) { server in
            let carrier = surroundings.carrier
            let (ann, annUID) = try await Self.register("ann", server, over: carrier)
            let (bob, bobUID) = try await Self.register("bob", server, over: carrier)
            let (cat, catUID) = try await Self.register("cat", server, over: carrier)
            #expect(try await ann.conversations().isEmpty)
            for number in 1...3 { try await bob.send("\(number)", to: .user(annUID)).receipt() }
            try await ann.send("hello", to: .user(catUID)).receipt()
            let talking = try await bob.createGroup(named: "climbers", with: [annUID]).id
            let silent = try await bob.createGroup(named: "silent", with: [annUID]).id
            for number in 1...2 { try await bob.send("\(number)", to: .group(talking)).receipt() }

            let second = try Self.client("second", server, over: carrier)
            _ = try await second.logIn(.password(nickName: "ann", password: "secret-ann"))
            let all = ["bob 3 of 3", "cat 0 of 1", "climbers 2 of 2", "silent 0 of 0"]
            for limit in [1, 2, 3, 4, 5, 100_000] { #expect(try await Self.list(second, by: limit) == all, "\(limit)") }
            let conversations = try await second.conversations().map(\.conversation)
            #expect(conversations == [.user(bobUID), .user(catUID), .group(talking), .group(silent)])
            // The other accounts have their own lists for the same conversations.
            #expect(try await Self.list(cat) == ["ann 1 of 1"])
            #expect(try await Self.list(bob) == ["ann 0 of 3", "climbers 0 of 2", "silent 0 of 0"])

            // A read mark of one device reaches the other device, which then fetches the list again.
            try await ann.markRead(.user(bobUID), upToSeq: 2)
            for await event in second.events {
                guard case .readMark = event.kind else { continue }
                break
            }
            #expect(try await Self.list(second).first == "bob 1 of 3")
            #expect(try await second.conversations().first?.readUpToSeq == 2)
            try await bob.send("4", to: .user(annUID)).receipt()
            #expect(try await Self.list(ann).first == "bob 2 of 4")
            let last = try #require(try await second.conversations().first)
            try await second.markRead(last.conversation, upToSeq: last.lastSeq)
            #expect(try await Self.list(ann).first == "bob 0 of 4")
            for client in [ann, bob, cat, second] { await client.close() }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a place that there cannot be is refused, and one without a conversation is a place`(
        carrier: Carrier
    ) async throws {
        try await withServer { server in
            let (ann, annUID) = try await Self.register("ann", server, over: carrier)
            try await ann.send("a note", to: .user(annUID)).receipt()
            for wrong in [Conversation.user(UserID(rawValue: 0)), .group(GroupID(rawValue: .max))] {
                let error = await #expect(throws: HermesClientError.self) {
                    try await ann.conversations(after: wrong)
                }
                #expect(error?.code == .invalidArgument)
            }
            let beyond = Conversation.user(UserID(rawValue: 1 << 31 - 1))
            #expect(try await ann.conversations(after: beyond, limit: -1).isEmpty)
            #expect(try await Self.list(ann) == ["ann 0 of 1"])
            await ann.close()
        }
    }
}
