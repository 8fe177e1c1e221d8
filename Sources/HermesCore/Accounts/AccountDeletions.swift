// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Deletes accounts, a bounded part with each commit, so that nobody waits for one that has much.
///
/// What was begun is carried on after a restart (``load()``) and after a failure of the store (``resume()``).
/// State: a `Mutex` around those under way.
final class AccountDeletions: Sendable {
    private typealias Waiter = @Sendable (Result<Void, HermesError>) -> Void

    private struct State {
        /// Who waits for the end of each that is under way.
        var running: [UserID: [Waiter]] = [:]
        var stalled: Set<UserID> = []
    }

    private let store: any MessageStore
    private let committer: GroupCommitter
    private let state = Mutex(State())

    init(store: any MessageStore, committer: GroupCommitter) {
        self.store = store
        self.committer = committer
    }

    /// Deletes an account, which must be closed; returns when nothing of it is left but its inbox, which purge deletes.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`; what had begun is gone on with later.
    func delete(_ user: UserID) async throws(HermesError) {
        let result = await withCheckedContinuation { continuation in
            start(user) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Goes on with those that an earlier process left behind; to be called once, at the start.
    func load() async throws(HermesError) {
        for user in try await store.deletions() { start(user) { _ in } }
    }

    /// Tries again where the store could not write; to be called every now and then.
    func resume() {
        let stalled = state.withLock { state in
            defer { state.stalled = [] }
            return state.stalled
        }
        for user in stalled { start(user) { _ in } }
    }

    private func start(_ user: UserID, _ waiter: @escaping Waiter) {
        let isFirst = state.withLock { state in
            state.stalled.remove(user)
            state.running[user, default: []].append(waiter)
            return state.running[user]?.count == 1
        }
        if isFirst { step(user) }
    }

    private func step(_ user: UserID) {
        committer.submit(
            .deleteAccount(user),
            .deletion { [weak self] result in
                switch result {
                case .success(false): self?.step(user)
                case .success(true): self?.end(user, .success(()))
                case .failure(let error): self?.end(user, .failure(error))
                }
            }
        )
    }

    private func end(_ user: UserID, _ result: Result<Void, HermesError>) {
        let waiters = state.withLock { state in
            // Not there any more is as good as deleted, for whoever goes on with it.
            if case .failure(let error) = result, error.code != .notFound { state.stalled.insert(user) }
            return state.running.removeValue(forKey: user) ?? []
        }
        for waiter in waiters { waiter(result) }
    }
}
