// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The effects that a change of an account has on its connections and sessions.
extension DurableSessions {
    /// Ends connections of an account. If the account is deleted, its sessions also end. If the account is only renamed
    /// or disabled, its sessions stay.
    ///
    /// - Parameter name: the name that the account had until now (``NickName/key``). It is used only if the account was
    ///   renamed, disabled or deleted; otherwise it may be nil.
    func end(_ user: UserID, _ name: String?, _ reason: AttachmentEnd, _ devices: EndedDevices) {
        let owner = SessionOwner.account(user)
        // Connections that logged in under the new name stay.
        end(owner, reason, devices, named: reason == .accountRenamed ? name : nil)
        if let name, reason == .accountDisabled || reason == .accountDeleted {
            // Ends the connections of clients that logged in under this name before the account had it. The sessions of
            // these clients do not belong to the account.
            end(.subject(name), .accountDisabled, .all)
        }
        guard reason.freesName, let name else { return }
        let keys = shared.state.withLock { $0.seats.keys(of: owner) }
        nameFreed(FreedName(user: user, name: name, sessions: keys))
        for load in shared.state.withLock({ $0.loads(of: keys) }) { load.lost(name) }
        guard reason.endsKeptSessions else { return }
        endAll(of: owner)
    }

    /// The names under which an account's connections logged in, and the proofs that they presented.
    package struct Logins: Sendable {
        package let names: Set<String>
        package let shown: Set<ShownProof>
    }

    /// The accounts with connections.
    package var connectedAccounts: [UserID: Logins] {
        var found: [UserID: Logins] = [:]
        for owner in shared.state.withLock({ $0.seats.owners }) {
            guard case .account(let user) = owner else { continue }
            let attachments = shared.state.withLock { $0.attachments(of: owner) }
            guard !attachments.isEmpty else { continue }
            found[user] = Logins(names: Set(attachments.compactMap(\.userName)), shown: Set(attachments.map(\.shown)))
        }
        return found
    }

    /// Ends those connections of an account that presented one of these proofs, because the proofs are no longer valid.
    func end(_ user: UserID, having shown: Set<ShownProof>) {
        let attachments = shared.state.withLock { $0.attachments(of: .account(user)) { shown.contains($1.shown) } }
        for attachment in attachments { attachment.ended(.revoked) }
    }

    /// Ends all sessions of an owner who is gone. A session with a connection ends together with the connection.
    /// Returns before the ends of the sessions are stored.
    func endAll(of owner: SessionOwner) {
        perform(shared.change { $0.endAll(of: owner) })
    }

    /// Waits until all sessions of an owner are removed, after ``endAll(of:)`` was called. By then, the messages from
    /// shared subscriptions have gone to other members (``remove(_:sentUpTo:mayHoldShared:opening:)``).
    ///
    /// - Throws: `.overloaded`, `.storageUnavailable` or `.shuttingDown` if some sessions could not be removed. Their
    ///   removal is tried again later.
    func ended(_ owner: SessionOwner) async throws(HermesError) {
        let result = await withCheckedContinuation { continuation in
            shared.change { $0.farewells.wait(for: owner) { continuation.resume(returning: $0) } }
        }
        try result.get()
    }
}

/// An account that was renamed or deleted, and its sessions at that time.
package struct FreedName: Sendable, Hashable {
    package let user: UserID
    /// The freed name, in the form of ``NickName/key``.
    package let name: String
    package let sessions: [SessionKey]

    package init(user: UserID, name: String, sessions: [SessionKey]) {
        self.user = user
        self.name = name
        self.sessions = sessions
    }
}
