// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Requests, answers, blocks and lists of contacts. Safe to call from anywhere.
///
/// Changes go through the same committer as messages: what was acknowledged holds for every message that is sent after.
package final class ContactService: Sendable {
    private let store: any SocialStore
    private let committer: GroupCommitter

    init(store: any SocialStore, committer: GroupCommitter) {
        self.store = store
        self.committer = committer
    }

    /// Does something about another account; the other is told where it concerns it.
    ///
    /// - Parameters:
    ///   - command: what to do.
    ///   - peer: the other.
    ///   - message: goes with a request or an answer, at most ``ContactEvent/maxMessageBytes``.
    ///   - principal: who does it.
    /// - Throws: `.notFound` (no such account, nothing to answer or end), `.forbidden`, `.invalidArgument`, and what the
    ///   store and the committer throw.
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
        let operation = WriteOperation.contact(command, by: principal, peer: peer, message: message)
        try await withCheckedContinuation { continuation in
            committer.submit(operation, .done { continuation.resume(returning: $0) })
        }.get()
    }

    /// One's contacts and what may become some, ascending by id.
    package func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await store.contacts(of: user, after: after, limit: min(max(1, limit), StoreSettings.maxPageEntries))
    }

    /// Whether `peer` blocks `user`.
    package func isBlocked(_ user: UserID, by peer: UserID) async throws(HermesError) -> Bool {
        let before = UserID(rawValue: user.rawValue - 1)
        let next = try await store.contacts(of: peer, after: before, limit: 1).first
        return next.map { $0.account.id == user && $0.state == .blocked } ?? false
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
