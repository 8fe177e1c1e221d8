// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// The error of ``checkLink(_:_:)``. It does not reveal whether the account exists.
    package static let notAContact = HermesError(
        .forbidden,
        "only contacts can reach each other directly; ask to be one first"
    )

    /// Sends an ephemeral event of `user` to the devices of `peer`, if `user` may write to `peer`.
    ///
    /// - Returns: the number of devices that got the event.
    /// - Throws: `.storageUnavailable`.
    package func tell(_ peer: UserID, _ event: EphemeralEvent, from user: UserID) async throws(HermesError) -> Int {
        try await contacts.mayWrite(user, to: peer) ? devices.notify(peer, event) : 0
    }

    /// Sends an ephemeral event that only contacts may send to each other, such as a signal. Signals make telephones
    /// ring, and contain network addresses. An account may also send such an event to its own other devices.
    ///
    /// - Returns: the number of devices that got the event.
    /// - Throws: `.forbidden` if the two accounts are not contacts; `.storageUnavailable`. The error `.forbidden` does
    ///   not reveal whether `peer` exists, or whether `peer` blocks `user`.
    package func tellContact(
        _ peer: UserID,
        _ event: EphemeralEvent,
        from user: UserID
    ) async throws(HermesError) -> Int {
        try await checkLink(user, peer)
        return devices.notify(peer, event)
    }

    /// - Throws: `.forbidden` if the two accounts are neither contacts nor the same account; `.storageUnavailable`.
    package func checkLink(_ user: UserID, _ peer: UserID) async throws(HermesError) {
        if user == peer { return }
        guard try await contacts.areContacts(user, peer) else {
            throw Self.notAContact
        }
    }
}
