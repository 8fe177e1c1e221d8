// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// After an account has given up a name, no account can get the name until nothing is retained below `user/NAME/`.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct KeptNamesTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let messenger: Messenger

    init() { messenger = Messenger(store, time: time) }

    private func account(_ text: String) async throws -> Account {
        let name = NickName(stored: text, key: text)
        let new = NewAccount(nickName: name, password: PasswordHash(phc: "$none$"))
        return try await store.create(new, now: time.now())
    }

    private func retain(_ topic: String) async throws {
        let topic = try #require(TopicName(topic))
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            retain: true,
            publishedAt: time.now()
        )
        try await asking { messenger.durable.retain(publication, completion: $0) }
    }

    private func rename(_ account: Account, to name: String) async throws {
        _ = try await messenger.accounts.changeProfile(of: account.id, nickName: name, avatarURL: nil)
    }

    private var retained: [String] {
        get throws {
            let all = try #require(TopicFilter("#"))
            return messenger.durable.retained.matching(all, now: time.now()).map(\.topic.rawValue).sorted()
        }
    }

    @Test func `what was retained below it is gone before anybody can have it`() async throws {
        let ann = try await account("ann")
        for number in 0..<700 { try await retain("user/ann/\(number)") }
        try await retain("user/ann")
        try await retain("user/anna")
        try await rename(ann, to: "carl")
        #expect(try retained == ["user/anna"])
        #expect(try await store.keptNames().isEmpty)
        _ = try await account("ann")
        try await retain("user/ann/1")
        try await messenger.housekeeping(now: time.now())
        #expect(try retained == ["user/ann/1", "user/anna"], "the next owner's stays")
    }

    @Test func `renames of one account at the same time free each name that it gave up`() async throws {
        let ann = try await account("ann")
        for round in 0..<20 {
            async let first: Void = rename(ann, to: "first\(round)")
            async let second: Void = rename(ann, to: "second\(round)")
            async let third: Void = rename(ann, to: "third\(round)")
            _ = try await (first, second, third)
        }
        #expect(try await store.keptNames().isEmpty)
    }

    @Test func `a connection that still publishes there keeps it for a second`() async throws {
        let ann = try await account("ann")
        let key = SessionKey(owner: .account(ann.id), clientID: "a")
        _ = try await asking { completion in
            messenger.durable.attach(
                key,
                clean: false,
                expiry: .seconds(60),
                attachment: RecordingConnection(),
                completion: completion
            )
        }
        try await rename(ann, to: "carl")
        await #expect(throws: HermesError.self) { try await account("ann") }
        // This publication was on its way during the change of the name.
        try await retain("user/ann/late")
        try await messenger.housekeeping(now: time.now())
        await #expect(throws: HermesError.self) { try await account("ann") }
        time.advance(by: .seconds(1))
        try await messenger.housekeeping(now: time.now())
        #expect(try retained.isEmpty)
        _ = try await account("ann")
    }

    @Test func `what was retained below a deleted account's name is gone before anybody can have it`() async throws {
        let ann = try await account("ann")
        for number in 0..<700 { try await retain("user/ann/\(number)") }
        try await retain("user/anna")
        try await messenger.deleteAccount(ann.id)
        #expect(try retained == ["user/anna"])
        #expect(try await store.keptNames().isEmpty)
        _ = try await account("ann")
    }

    @Test func `a deletion that went on by itself frees its name, too`() async throws {
        let ann = try await account("ann")
        try await retain("user/ann/a")
        // No caller waits for the deletion, as after a failure of the store.
        try await messenger.deletions.delete(ann.id)
        await #expect(throws: HermesError.self) { try await account("ann") }
        try await messenger.housekeeping(now: time.now())
        #expect(try retained.isEmpty)
        _ = try await account("ann")
    }

    @Test func `what the next owner retains stays, whoever frees the name once more`() async throws {
        let ann = try await account("ann")
        let kept = KeptName(key: "ann", user: ann.id)
        try await retain("user/ann/a")
        try await messenger.deleteAccount(ann.id)
        _ = try await account("ann")
        try await retain("user/ann/b")
        await messenger.accounts.free(kept, givenUpAt: .zero)
        for _ in 0..<3 { try await messenger.housekeeping(now: time.now()) }
        #expect(try retained == ["user/ann/b"])
    }

    @Test func `the next process goes on with a deletion`() async throws {
        let ann = try await account("ann")
        try await retain("user/ann/a")
        // The server ended after this commit.
        _ = try store.commit([.deleteAccount(ann.id)], now: time.now())
        await #expect(throws: HermesError.self) { try await account("ann") }
        let later = Messenger(store, time: time)
        try await later.load()
        #expect(later.durable.retained.statistics.count == 1)
        try await later.housekeeping(now: time.now())
        #expect(later.durable.retained.statistics.count == 0)
        _ = try await account("ann")
    }

    @Test func `the next process goes on`() async throws {
        let ann = try await account("ann")
        try await retain("user/ann/a")
        // The server ended after this commit.
        _ = try await store.update(ann.id, AccountChange(nickName: NickName(stored: "carl", key: "carl")))
        let later = Messenger(store, time: time)
        try await later.load()
        #expect(later.durable.retained.statistics.count == 1)
        await #expect(throws: HermesError.self) { try await account("ann") }
        try await later.housekeeping(now: time.now())
        #expect(later.durable.retained.statistics.count == 0)
        _ = try await account("ann")
    }
}
