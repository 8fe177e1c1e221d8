// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Applies contact requests, answers and blocks, and reads contact lists. Thread-safe.
///
/// Changes go through the same committer as messages. So an acknowledged change applies to every message that is sent
/// later.
///
/// State: a `Mutex` around the allowances; nothing is called while it is locked.
package final class ContactService: Sendable {
    private let store: any SocialStore
    private let reads: ReadGate
    private let committer: InboxCommitter
    private let devices: DeviceRegistry
    private let time: any TimeSource
    private let acceptedFrom: MessageSettings.Senders
    private let allowance: Mutex<AccountAllowance>
    private let blocks = Mutex(AccountAllowance(perHour: ContactService.blocksPerHour))

    /// The maximum number of accounts that an account may block within an hour. The number is limited because each
    /// blocked account stays in the contact list.
    package static let blocksPerHour = 600
    /// The maximum number of rows of a contact list that one call to ``accepted(of:skipped:limit:)`` looks at.
    package static let maxLookedAt = 10_000

    init(
        store: any SocialStore,
        reads: ReadGate,
        committer: InboxCommitter,
        devices: DeviceRegistry,
        time: any TimeSource,
        requestsPerHour: Int,
        acceptedFrom: MessageSettings.Senders
    ) {
        self.store = store
        self.reads = reads
        self.committer = committer
        self.devices = devices
        self.time = time
        self.acceptedFrom = acceptedFrom
        allowance = Mutex(AccountAllowance(perHour: requestsPerHour))
    }

    /// Applies an action to another account, and notifies that account if something changes for it.
    ///
    /// - Parameters:
    ///   - command: the action.
    ///   - peer: the other account.
    ///   - message: the text of a request or an answer, at most ``ContactEvent/maxMessageBytes`` bytes.
    ///   - principal: the acting account.
    /// - Throws: `.notFound` (there is no such account, no request to answer, or no relation to end), `.forbidden`,
    ///   `.invalidArgument`, `.tooLarge`, `.rateLimited` (too many requests or blocks), and the errors of the store and
    ///   the committer.
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
            throw HermesError(.rateLimited, "you have sent too many contact requests this hour", retryAfter: wait)
        }
        if command == .block, let wait = blocks.withLock({ $0.take(1, of: principal.user, now: time.uptime()) }) {
            throw HermesError(.rateLimited, "you have blocked too many accounts this hour", retryAfter: wait)
        }
        do throws(HermesError) {
            try await commit(command, to: peer, message: message, by: principal)
        } catch {
            if error.isFailureOfServer { giveBack(command, to: principal.user) }
            throw error
        }
        // The account is hidden after the commit, so that every later read finds the block.
        if command == .block { devices.hide(principal.user, from: peer) }
    }

    private func commit(
        _ command: ContactCommand,
        to peer: UserID,
        message: String,
        by principal: Principal
    ) async throws(HermesError) {
        try await withCheckedContinuation { continuation in
            committer.submit(
                .contact(command, by: principal, peer: peer, message: message) { continuation.resume(returning: $0) }
            )
        }.get()
    }

    /// Gives back the charge for an action that the server could not commit.
    private func giveBack(_ command: ContactCommand, to user: UserID) {
        if command == .request { allowance.withLock { $0.giveBack(1, to: user) } }
        if command == .block { blocks.withLock { $0.giveBack(1, to: user) } }
    }

    /// Returns the contacts, requests and blocks of an account, ascending by id.
    package func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await page(of: user, after: after, limit: min(max(1, limit), StoreSettings.maxPageEntries))
    }

    private func page(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await reads.turn(of: .account(user)) { () async throws(HermesError) in
            try await store.contacts(of: user, after: after, limit: limit)
        }
    }

    /// Returns the accounts among `others` that block `user`. The read waits for a turn of `user`.
    private func blockers(of user: UserID, among others: [UserID]) async throws(HermesError) -> Set<UserID> {
        if others.isEmpty { return [] }
        return try await reads.turn(of: .account(user)) { () async throws(HermesError) in
            try await store.blockers(of: user, among: others)
        }
    }

    /// Whether `peer` blocks `user`.
    package func isBlocked(_ user: UserID, by peer: UserID) async throws(HermesError) -> Bool {
        try await !blockers(of: user, among: [peer]).isEmpty
    }

    /// Whether `user` may write to `peer`. Use this for events that are not stored. For messages, the store makes this
    /// check within the commit.
    package func mayWrite(_ user: UserID, to peer: UserID) async throws(HermesError) -> Bool {
        switch acceptedFrom {
        case .everyone:
            return try await !isBlocked(user, by: peer)
        case .contacts:
            if user == peer { return true }
            return try await areContacts(user, peer)
        }
    }

    /// Whether the two accounts are contacts: both agreed, and neither blocks the other.
    package func areContacts(_ user: UserID, _ peer: UserID) async throws(HermesError) -> Bool {
        let before = UserID(rawValue: peer.rawValue - 1)
        let next = try await page(of: user, after: before, limit: 1).first
        return next.map { $0.account.id == peer && $0.state == .accepted } ?? false
    }

    /// Returns the accounts among `users` that are connected. An account that blocks `viewer` never counts as
    /// connected.
    package func online(among users: [UserID], for viewer: UserID) async throws(HermesError) -> Set<UserID> {
        let online = Set(users.filter { devices.isOnline($0) })
        guard !online.isEmpty else { return [] }
        return online.subtracting(try await blockers(of: viewer, among: Array(online)))
    }

    /// Sends presence events of these accounts to an attachment from now on. Accounts that block the attachment's user
    /// are left out.
    ///
    /// - Returns: the accounts among `users` that are connected and do not block the attachment's user.
    package func watch(_ users: [UserID], by attachment: any Attachment) async throws(HermesError) -> Set<UserID> {
        let viewer = attachment.principal.user
        let hidden = try await blockers(of: viewer, among: users)
        let visible = users.filter { !hidden.contains($0) }
        let added = devices.watch(visible, by: attachment)
        let online = visible.filter { devices.isOnline($0) }
        // If a block was committed after the first read, the blocking account may have been hidden before the
        // attachment watched it. Such a block is found now.
        let late: Set<UserID>
        do throws(HermesError) {
            late = try await blockers(of: viewer, among: visible)
        } catch {
            devices.unwatch(added, by: attachment)
            throw error
        }
        if !late.isEmpty { devices.unwatch(Array(late), by: attachment) }
        return Set(online).subtracting(late)
    }

    /// Returns a page of the contacts to which both accounts agreed, ascending by id.
    ///
    /// - Parameter skipped: the number of contacts to skip at the start.
    /// - Returns: the contacts, and the number of rows that were read to find them, at most ``maxLookedAt``. This
    ///   number may be higher than the number of contacts, because the list also contains requests and blocks.
    package func accepted(
        of user: UserID,
        skipped: Int,
        limit: Int
    ) async throws(HermesError) -> (found: [Contact], lookedAt: Int) {
        var found: [Contact] = []
        var (left, lookedAt): (Int, Int) = (max(0, skipped), 0)
        var last: UserID?
        while found.count < limit, lookedAt < Self.maxLookedAt {
            let page = try await contacts(of: user, after: last, limit: StoreSettings.maxPageEntries)
            lookedAt += page.count
            for contact in page where contact.state == .accepted {
                if left > 0 { left -= 1 } else if found.count < limit { found.append(contact) }
            }
            guard page.count == StoreSettings.maxPageEntries else { break }
            last = page.last?.account.id
        }
        return (found, lookedAt)
    }
}
