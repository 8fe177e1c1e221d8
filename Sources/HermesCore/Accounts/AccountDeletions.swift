// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Deletes accounts in bounded parts, one per commit, so that a large account does not delay other operations.
///
/// A deletion continues after a restart (``load()``) and after a failure of the store (``resume()``). State: a `Mutex`
/// around the running deletions.
final class AccountDeletions: Sendable {
    private typealias Waiter = @Sendable (Result<Void, HermesError>) -> Void

    private struct State {
        /// The waiters for each running deletion.
        var running: [UserID: [Waiter]] = [:]
        var stalled: Set<UserID> = []
        /// Whether a deletion has finished since the last call to ``takeFinished()``.
        var haveFinished = false
    }

    private let store: any MessageStore
    private let committer: InboxCommitter
    private let state = Mutex(State())
    /// Called when an account is gone. Its inbox may still be there.
    let finished = Hook<UserID>()

    init(store: any MessageStore, committer: InboxCommitter) {
        self.store = store
        self.committer = committer
    }

    /// Deletes an account that nobody can log in to any more (``AccountService/close(_:)``). Returns when everything
    /// except the account's inbox is deleted. The purge deletes the inbox later.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`. After all errors except
    ///   `.notFound`, ``resume()`` retries the deletion, even if its first commit failed. After a restart, the deletion
    ///   continues only if its first commit had succeeded.
    func delete(_ user: UserID) async throws(HermesError) {
        let result = await withCheckedContinuation { continuation in
            start(user) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Continues the deletions of an earlier process. This is called once, when the server starts.
    ///
    /// - Returns: the number of these deletions.
    @discardableResult
    func load() async throws(HermesError) -> Int {
        let users = try await store.deletions()
        for user in users { start(user) { _ in } }
        return users.count
    }

    /// Retries the deletions that have failed. This is called periodically.
    func resume() {
        let stalled = state.withLock { state in
            defer { state.stalled = [] }
            return state.stalled
        }
        for user in stalled { start(user) { _ in } }
    }

    /// Whether a deletion has finished since the last call. If so, the account service must read the kept names.
    func takeFinished() -> Bool {
        state.withLock { state in
            defer { state.haveFinished = false }
            return state.haveFinished
        }
    }

    /// Makes the next call to ``takeFinished()`` return true.
    func noteFinished() { state.withLock { $0.haveFinished = true } }

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
            .deleteAccount(user) { [weak self] result in
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
            // An account that is gone counts as deleted.
            switch result {
            case .failure(let error) where error.code != .notFound: state.stalled.insert(user)
            case .success, .failure: state.haveFinished = true
            }
            return state.running.removeValue(forKey: user) ?? []
        }
        if result.error.map({ $0.code == .notFound }) ?? true { finished(user) }
        for waiter in waiters { waiter(result) }
    }
}
