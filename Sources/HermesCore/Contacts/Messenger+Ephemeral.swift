// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Tells the devices of `peer` something of `user`'s that matters only now; nobody is told who blocks `user`.
    ///
    /// - Returns: how many devices were told.
    /// - Throws: `.storageUnavailable`.
    package func tell(_ peer: UserID, _ event: EphemeralEvent, from user: UserID) async throws(HermesError) -> Int {
        try await contacts.isBlocked(user, by: peer) ? 0 : sessions.notify(peer, event)
    }

    /// The same for what only contacts may tell each other, as signals are: they make telephones ring and hold addresses.
    /// One's own other devices are told, too.
    ///
    /// - Returns: how many devices were told.
    /// - Throws: `.forbidden` unless the two are contacts, which does not say whether `peer` blocks `user`, or is there;
    ///   `.storageUnavailable`.
    package func tellContact(
        _ peer: UserID,
        _ event: EphemeralEvent,
        from user: UserID
    ) async throws(HermesError) -> Int {
        try await checkLink(user, peer)
        return sessions.notify(peer, event)
    }

    /// - Throws: `.forbidden` unless the two are contacts or one and the same; `.storageUnavailable`.
    package func checkLink(_ user: UserID, _ peer: UserID) async throws(HermesError) {
        if user == peer { return }
        guard try await contacts.areContacts(user, peer) else {
            throw HermesError(.forbidden, "only contacts can reach each other directly; ask to be one first")
        }
    }
}
