// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesServer
import HermesTestKit
import Testing

/// The rules about who may write to whom, and who may read earlier messages, in all protocols with such requests.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MessageRuleTests {
    private static func code(_ result: [String: Any]) -> Int {
        (result["error"] as? [String: Any])?["code"] as? Int ?? 0
    }

    @Test(arguments: TestStore.allCases)
    func `only contacts write to each other and add each other to groups where that is the rule`(
        store: TestStore
    ) async throws {
        func contactsOnly(_ settings: inout ServerSettings) { settings.messages.acceptedFrom = .contacts }
        try await withServer(store: store, configure: contactsOnly) { server in
            let api = try await APIClient(server)
            let (ann, bob) = (try await WebPage.open(server), try await WebPage.open(server))
            let (annID, bobID) = (try await ann.register("ann"), try await bob.register("bob"))
            let send = #""send":{"to":{"uid":\#(bobID)},"content":{"text":"hi"}}"#
            func typing(stopped: Bool) -> String {
                #""typing":{"conversation":{"uid":\#(bobID)},"stopped":\#(stopped)}"#
            }
            let posted = #"{"to":{"user":"bob"},"text":"hi","client_id":"c1"}"#
            #expect(Self.code(try await ann.ask(2, send)) == 2003)
            #expect(try await api.send("POST", "/v1/users/ann/messages", posted).status == 403)
            // The request seems to succeed, so that it does not reveal anybody's contacts. But the event does not
            // arrive.
            #expect(Self.code(try await ann.ask(3, typing(stopped: false))) == 0)
            // A message to oneself is allowed.
            let own = #""send":{"to":{"uid":\#(annID)},"content":{"text":"note"}}"#
            #expect(Self.code(try await ann.ask(4, own)) == 0)
            let create = #""group":{"create":{"name":"g","memberUids":[\#(bobID)]}}"#
            #expect(Self.code(try await ann.ask(5, create)) == 2003)

            #expect(Self.code(try await ann.ask(7, #""contact":{"add":{"uid":\#(bobID)}}"#)) == 0)
            #expect(Self.code(try await ann.ask(8, send)) == 2003)
            #expect(Self.code(try await bob.ask(2, #""contact":{"answer":{"uid":\#(annID),"accept":true}}"#)) == 0)
            #expect(Self.code(try await ann.ask(9, send)) == 0)
            let group = try await ann.ask(6, create)
            let groupID = try #require((group["group"] as? [String: Any])?["id"] as? Int)
            #expect(try await api.send("POST", "/v1/users/ann/messages", posted).status == 201)
            // Another start would be suppressed as a repetition of the start above. The stop is passed on, and is the
            // first event that arrives.
            #expect(Self.code(try await ann.ask(10, typing(stopped: true))) == 0)
            let arrived = try await bob.next("ephemeral")["typing"] as? [String: Any]
            #expect(arrived?["stopped"] as? Bool == true)
            #expect(Self.code(try await ann.ask(11, #""contact":{"remove":{"uid":\#(bobID)}}"#)) == 0)
            #expect(Self.code(try await ann.ask(12, send)) == 2003)
            // A member may leave a group. Until then, all members may write to it.
            let talk = #""send":{"to":{"groupId":\#(groupID)},"content":{"text":"all"}}"#
            #expect(Self.code(try await ann.ask(13, talk)) == 0)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a new member reads what was said since it joined, unless the group's history is open`(
        store: TestStore
    ) async throws {
        func keeping(_ settings: inout ServerSettings) { settings.store.historyPeriod = .seconds(86_400) }
        try await withServer(store: store, configure: keeping) { server in
            let (ann, bob) = (try await WebPage.open(server), try await WebPage.open(server))
            _ = try await ann.register("ann")
            let bobID = try await bob.register("bob")
            let made = try await ann.ask(2, #""group":{"create":{"name":"g"}}"#)
            let group = try #require((made["group"] as? [String: Any])?["id"] as? Int)
            func say(_ text: String, _ id: Int) async throws {
                let result = try await ann.ask(
                    id,
                    #""send":{"to":{"groupId":\#(group)},"content":{"text":"\#(text)"}}"#
                )
                #expect(Self.code(result) == 0)
            }
            func texts(_ page: WebPage, _ id: Int) async throws -> [String] {
                let result = try await page.ask(id, #""history":{"conversation":{"groupId":\#(group)}}"#)
                let messages = (result["history"] as? [String: Any])?["messages"] as? [[String: Any]] ?? []
                return messages.compactMap { ($0["content"] as? [String: Any])?["text"] as? String }
            }
            try await say("one", 3)
            try await say("two", 4)
            let add = #""group":{"changeMembers":{"groupId":\#(group),"addUids":[\#(bobID)]}}"#
            #expect(Self.code(try await ann.ask(5, add)) == 0)
            try await say("three", 6)
            #expect(try await texts(ann, 7) == ["one", "two", "three"])
            #expect(try await texts(bob, 7) == ["three"])
            let open = try await ann.ask(8, #""group":{"change":{"groupId":\#(group),"historyOpen":true}}"#)
            #expect((open["group"] as? [String: Any])?["historyOpen"] as? Bool == true)
            #expect(try await texts(bob, 9) == ["one", "two", "three"])
            try await server.restart()
            let again = try await WebPage.open(server)
            let login = #""authenticate":{"password":{"nickName":"bob","password":"secret12"},"device":{"id":"other"}}"#
            #expect(Self.code(try await again.ask(1, login)) == 0)
            #expect(try await texts(again, 2) == ["one", "two", "three"])
        }
    }
}
