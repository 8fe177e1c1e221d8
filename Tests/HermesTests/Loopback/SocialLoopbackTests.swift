// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import Testing

/// Contacts and groups, with the client and a whole server.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct SocialLoopbackTests {
    private static func register(_ name: String, _ server: TestServer) async throws -> (HermesClient, UserID) {
        let client = try HermesClient(
            HermesClient.Configuration(
                server: ServerAddress(port: server.port("delimited")),
                device: DeviceDescription(id: name)
            )
        )
        return (client, try await client.logIn(.register(nickName: name, password: "secret")).uid)
    }

    private static func next<Value: Sendable>(
        of client: HermesClient,
        _ pick: (InboxEvent) -> Value?
    ) async throws -> Value {
        for await event in client.events {
            if let value = pick(event) { return value }
        }
        throw CancellationError()
    }

    private struct Contacted: Sendable {
        let change: ContactChange
        let uid: UserID
        let message: String
    }

    private static func contact(_ event: InboxEvent) -> Contacted? {
        guard case .contact(let change, by: let uid, nickName: _, let message) = event.kind else { return nil }
        return Contacted(change: change, uid: uid, message: message)
    }

    private static func group(_ event: InboxEvent) -> GroupID? {
        guard case .group(.created, of: let id, name: _, by: _) = event.kind else { return nil }
        return id
    }

    @Test(arguments: TestStore.allCases)
    func `people ask, agree, block and part`(store: TestStore) async throws {
        try await withServer(store: store) { server in
            let (ann, annUID) = try await Self.register("ann", server)
            let (bob, bobUID) = try await Self.register("bob", server)
            try await ann.requestContact(with: bobUID, message: "it is me")
            let asked = try await Self.next(of: bob, Self.contact)
            #expect(asked.change == .requested && asked.uid == annUID && asked.message == "it is me")
            #expect(try await bob.contacts().map(\.state) == [.incoming])
            #expect(try await ann.contacts().map(\.state) == [.requested])

            try await bob.answerContact(from: annUID, accepts: true)
            let answered = try await Self.next(of: ann, Self.contact)
            #expect(answered.change == .accepted)
            let contact = try #require(try await ann.contacts().first)
            #expect(contact.state == .accepted && contact.account.nickName == "bob" && contact.account.isOnline)

            try await bob.block(annUID)
            let refusal = await #expect(throws: HermesClientError.self) { try await ann.requestContact(with: bobUID) }
            #expect(refusal?.code == .forbidden)
            try await bob.unblock(annUID)
            let nobody = await #expect(throws: HermesClientError.self) {
                try await bob.answerContact(from: annUID, accepts: false)
            }
            #expect(nobody?.code == .notFound)
            await ann.close()
            await bob.close()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a group comes, changes, talks and goes`(store: TestStore) async throws {
        try await withServer(store: store) { server in
            let (ann, _) = try await Self.register("ann", server)
            let (bob, bobUID) = try await Self.register("bob", server)
            let (carl, carlUID) = try await Self.register("carl", server)
            let group = try await ann.createGroup(named: "friends", with: [bobUID])
            #expect(group.name == "friends" && group.memberCount == 2)
            #expect(try await Self.next(of: bob, Self.group) == group.id)

            try await ann.changeMembers(ofGroup: group.id, adding: [carlUID])
            #expect(try await carl.groups().map(\.name) == ["friends"])
            try await carl.send("hello, all", to: .group(group.id)).receipt()
            let text = try await Self.next(of: bob) { event -> String? in
                if let message = event.message { message.text } else { nil }
            }
            #expect(text == "hello, all")

            let forbidden = await #expect(throws: HermesClientError.self) {
                try await bob.changeGroup(id: group.id, name: "bob's")
            }
            #expect(forbidden?.code == .forbidden)
            var member = try #require(try await ann.group(id: group.id).members.first { $0.uid == bobUID })
            member.role = .administrator
            try await ann.changeRole(inGroup: group.id, of: member)
            let changed = try await bob.changeGroup(id: group.id, name: "bob's", isMuted: true, isHistoryOpen: true)
            #expect(changed.name == "bob's" && changed.isMuted && changed.isHistoryOpen)
            #expect(try await ann.group(id: group.id).isMuted)

            try await carl.leaveGroup(id: group.id)
            try await ann.dissolveGroup(id: group.id)
            #expect(try await bob.groups().isEmpty)
            for client in [ann, bob, carl] { await client.close() }
        }
    }
}
