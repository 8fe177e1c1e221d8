// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct SessionOwnerTests {
    private static let ann = UserID(rawValue: 7)
    private let sessions = DurableSessions(store: FakeSessionStore(), time: ManualTime())

    @Test func `an owner comes back from the store as it was, and nothing else is one`() throws {
        let ann = try #require(Self.ann)
        let owners: [SessionOwner] = [.anonymous, .account(ann), .subject("7"), .subject("u7"), .subject("sann")]
        #expect(Set(owners.map(\.stored)).count == owners.count)
        for owner in owners { #expect(SessionOwner(stored: owner.stored) == owner) }
        for text in ["ann", "h10.0.0.1", "u", "u0", "u-7", "u7x", "u+7", "u07", "u99999999999", "U7", "\u{1}u7"] {
            #expect(SessionOwner(stored: text) == nil, "\(text)")
        }
    }

    @Test func `a source comes back from the store as it was; one that is not readable is nobody's`() throws {
        let ann = try #require(Self.ann)
        let sources: [CommitSource] = [
            .server, .account(ann), .subject("ann"), CommitSource(host: "10.0.0.1"), CommitSource(host: "2001:db8::1"),
            CommitSource(host: nil),
        ]
        #expect(Set(sources.map(\.stored)).count == sources.count)
        for source in sources { #expect(CommitSource(stored: source.stored) == source) }
        #expect(sources.map(\.kind) == [.server, .account, .account, .address, .address, .address])
        for text in ["ann", "u0", "x"] { #expect(CommitSource(stored: text) == .server, "\(text)") }
    }

    @Test(arguments: ["\u{301}bob", "\u{1F3FB}bob", "\u{200D}bob"])
    func `a name comes back from the store byte by byte, even if it begins with a combining mark`(name: String) throws {
        let owner = SessionOwner.subject(name)
        let foundOwner = try #require(SessionOwner(stored: owner.stored))
        #expect(foundOwner == owner)
        #expect(foundOwner.stored.utf8.elementsEqual(owner.stored.utf8))
        for source in [CommitSource.subject(name), .address(name)] {
            let found = CommitSource(stored: source.stored)
            #expect(found == source)
            #expect(found.stored.utf8.elementsEqual(source.stored.utf8))
        }
    }

    @Test func `a session ends with its owner, also if its connection closes by itself at this moment`() async throws {
        let ann = try #require(Self.ann)
        for clientID in ["a", "b"] {
            let connection = RecordingConnection()
            let key = SessionKey(owner: .account(ann), clientID: clientID)
            let opening = try await asking { completion in
                sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
            }
            sessions.end(ann, "ann", .accountDeleted, .all)
            #expect(connection.ends.last == .accountDeleted)
            // The connection detaches as if it had not been told about the deletion yet.
            sessions.detach(opening.id, connection, sentUpTo: 0, expiry: nil)
            try await sessions.ended(.account(ann))
            #expect(sessions.statistics.sessions == 0)
        }
    }

    @Test func `a rename ends the connections of an account and tells whose names are free, and no session`()
        async throws
    {
        let ann = try #require(Self.ann)
        let freed = Collector<FreedName>()
        sessions.nameFreed.observe { freed.add($0) }
        var connections: [RecordingConnection] = []
        for owner in [SessionOwner.account(ann), .subject("ann")] {
            let connection = RecordingConnection()
            connections.append(connection)
            let key = SessionKey(owner: owner, clientID: "a")
            _ = try await asking { completion in
                sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
            }
        }
        sessions.end(ann, "ann", .accountRenamed, .all)
        #expect(connections.map(\.ends) == [[.accountRenamed], []])
        let key = SessionKey(owner: .account(ann), clientID: "a")
        #expect(await freed.next(1) == [FreedName(user: ann, name: "ann", sessions: [key])])
        #expect(sessions.statistics.sessions == 2)
        // When the account is disabled, the connections that logged in under its name also end.
        sessions.end(ann, "ann", .accountDisabled, .all)
        #expect(connections.map(\.ends.last) == [.accountDisabled, .accountDisabled])
        #expect(sessions.statistics.sessions == 2)
    }
}
