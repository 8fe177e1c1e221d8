// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Requests, answers, blocks and lists of contacts. Safe to call from anywhere.
///
/// Changes go through the same committer as messages: what was acknowledged holds for every message that is sent after.
///
/// State: a `Mutex` around the allowances; nothing is called under it.
package final class ContactService: Sendable {
    private let store: any SocialStore
    private let committer: GroupCommitter
    private let sessions: SessionRegistry
    private let time: any TimeSource
    private let allowance: Mutex<AccountAllowance>

    init(
        store: any SocialStore,
        committer: GroupCommitter,
        sessions: SessionRegistry,
        time: any TimeSource,
        requestsPerHour: Int
    ) {
        self.store = store
        self.committer = committer
        self.sessions = sessions
        self.time = time
        allowance = Mutex(AccountAllowance(perHour: requestsPerHour))
    }

    /// Does something about another account; the other is told where it concerns it.
    ///
    /// - Parameters:
    ///   - command: what to do.
    ///   - peer: the other.
    ///   - message: goes with a request or an answer, at most ``ContactEvent/maxMessageBytes``.
    ///   - principal: who does it.
    /// - Throws: `.notFound` (no such account, nothing to answer or end), `.forbidden`, `.invalidArgument`, `.rateLimited`
    ///   (too many requests), and what the store and the committer throw.
    package func apply(
        _ command: ContactCommand,
        to peer: UserID,
        message: String = "",
        by principal: Principal
    ) async throws(HermesError) {
        guard peer != principal.user else {
            throw HermesError(.invalidArgument, "this is your own account; name another one")
        }
        guard message.utf8.count <= ContactEvent.maxMessageBytes else {
            throw HermesError(.tooLarge, "the message is longer than \(ContactEvent.maxMessageBytes) bytes")
        }
        if command == .request,
            let wait = allowance.withLock({ $0.take(1, of: principal.user, now: time.uptime()) })
        {
            throw HermesError(.rateLimited, "you have asked too many people this hour", retryAfter: wait)
        }
        let operation = WriteOperation.contact(command, by: principal, peer: peer, message: message)
        try await withCheckedContinuation { continuation in
            committer.submit(operation, .done { continuation.resume(returning: $0) })
        }.get()
        // After the commit: who asks from now on finds the block.
        if command == .block { sessions.hide(principal.user, from: peer) }
    }

    /// One's contacts and what may become some, ascending by id.
    package func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await store.contacts(of: user, after: after, limit: min(max(1, limit), StoreSettings.maxPageEntries))
    }

    /// Whether `peer` blocks `user`.
    package func isBlocked(_ user: UserID, by peer: UserID) async throws(HermesError) -> Bool {
        try await !store.blockers(of: user, among: [peer]).isEmpty
    }

    /// Whether the two are contacts: both agreed, and neither blocks the other.
    package func areContacts(_ user: UserID, _ peer: UserID) async throws(HermesError) -> Bool {
        let before = UserID(rawValue: peer.rawValue - 1)
        let next = try await store.contacts(of: user, after: before, limit: 1).first
        return next.map { $0.account.id == peer && $0.state == .accepted } ?? false
    }

    /// Those among `users` who are connected, as far as `viewer` may know: who blocks it never is.
    package func online(among users: [UserID], for viewer: UserID) async throws(HermesError) -> Set<UserID> {
        let online = Set(users.filter { sessions.isOnline($0) })
        guard !online.isEmpty else { return [] }
        return online.subtracting(try await store.blockers(of: viewer, among: Array(online)))
    }

    /// From now on an attachment is told when these come and go, but for those who block its user.
    ///
    /// - Returns: those of them who are connected, as far as it may know.
    package func watch(_ users: [UserID], by attachment: any Attachment) async throws(HermesError) -> Set<UserID> {
        let viewer = attachment.principal.user
        let blockers = try await store.blockers(of: viewer, among: users)
        let visible = users.filter { !blockers.contains($0) }
        sessions.watch(visible, by: attachment)
        let online = visible.filter { sessions.isOnline($0) }
        // A block that was committed since found nobody to hide from, or finds one now.
        let late = try await store.blockers(of: viewer, among: visible)
        if !late.isEmpty { sessions.unwatch(Array(late), by: attachment) }
        return Set(online).subtracting(late)
    }

    /// A page of those who both agreed, ascending by id.
    ///
    /// - Parameter skipped: how many to leave out at the start.
    package func accepted(of user: UserID, skipped: Int, limit: Int) async throws(HermesError) -> [Contact] {
        var found: [Contact] = []
        var left = max(0, skipped)
        var last: UserID?
        while found.count < limit {
            let page = try await contacts(of: user, after: last, limit: StoreSettings.maxPageEntries)
            for contact in page where contact.state == .accepted {
                if left > 0 { left -= 1 } else if found.count < limit { found.append(contact) }
            }
            guard page.count == StoreSettings.maxPageEntries else { break }
            last = page.last?.account.id
        }
        return found
    }
}
