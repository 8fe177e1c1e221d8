// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Synchronization
import Testing

/// Contacts while the store fails.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ContactFailureTests {
    private let time = ManualTime()

    @Test
    func `who is blocked while its request to watch fails hears nothing of the blocker, and goes on to hear of others`()
        async throws
    {
        let store = MemoryStore()
        try await addAccounts(3, to: store)
        let social = FailingSocialStore(store)
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: social,
            sessionStore: store,
            pushTokenStore: store,
            time: time
        )
        let (ann, bob, carl) = try (principal(1), principal(2), principal(3))
        let watcher = RecordingAttachment(ann)
        messenger.devices.attach(watcher)
        _ = try await messenger.contacts.watch([carl.user], by: watcher)
        let block = WriteOperation.contact(.block, by: bob, peer: ann.user, message: "")
        social.failAfterNextRead { _ = try? store.commit([block], now: Timestamp(rawValue: 0)) }
        let failure = await code { _ = try await messenger.contacts.watch([bob.user, carl.user], by: watcher) }
        #expect(failure == .storageUnavailable)
        for person in [bob, carl] { messenger.devices.attach(RecordingAttachment(person)) }
        #expect(watcher.events == [.presence(carl.user, isOnline: true, lastSeen: nil)])
        await messenger.shutdown()
    }

    @Test func `a request that the server could not store is not one of the hour's`() async throws {
        let store = FakeStore()
        try await addAccounts(5, to: store.base)
        var settings = MessageSettings()
        settings.contactRequestsPerHour = 3
        let messenger = Messenger(store.base, messages: store, settings: settings, time: time)
        func request(_ peer: Int32) async -> HermesError.Code? {
            await code { try await messenger.contacts.apply(.request, to: user(peer), by: principal(1)) }
        }
        store.fail(3)
        for _ in 1...3 { #expect(await request(2) == .storageUnavailable) }
        for peer in Int32(2)...4 { #expect(await request(peer) == nil) }
        #expect(await request(5) == .rateLimited)
        await messenger.shutdown()
    }
}

/// A store that can fail to read who blocks an account.
private final class FailingSocialStore: SocialStore {
    private let base: MemoryStore
    private let afterRead = Mutex<(@Sendable () -> Void)?>(nil)
    private let fails = Mutex(false)

    init(_ base: MemoryStore) { self.base = base }

    /// Calls `body` after the next read of blockers. All later reads fail.
    func failAfterNextRead(_ body: @escaping @Sendable () -> Void) { afterRead.withLock { $0 = body } }

    func blockers(of user: UserID, among users: [UserID]) async throws(HermesError) -> Set<UserID> {
        if fails.withLock({ $0 }) { throw HermesError(.storageUnavailable, "full") }
        let found = try await base.blockers(of: user, among: users)
        if let body = afterRead.withLock({ $0 }) {
            body()
            fails.withLock { $0 = true }
        }
        return found
    }

    func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await base.contacts(of: user, after: after, limit: limit)
    }

    func group(_ id: GroupID) async throws(HermesError) -> Group? { try await base.group(id) }

    func groups(of user: UserID, after: GroupID?, limit: Int) async throws(HermesError) -> [GroupSummary] {
        try await base.groups(of: user, after: after, limit: limit)
    }

    func groups(
        after: GroupID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [GroupSummary], next: GroupID?) {
        try await base.groups(after: after, named: key, limit: limit)
    }

    func readableAfter(_ user: UserID, in group: GroupID) async throws(HermesError) -> UInt64? {
        try await base.readableAfter(user, in: group)
    }

    func names(of users: [UserID]) async throws(HermesError) -> [UserID: String] { try await base.names(of: users) }
}
