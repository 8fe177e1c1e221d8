// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// The refusal of ``checkLink(_:_:)``. It does not reveal whether there is such an account.
    package static let notAContact = HermesError(
        .forbidden,
        "only contacts can reach each other directly; ask to be one first"
    )

    /// Sends an ephemeral event of `user` to the devices of `peer`, if `user` may write to `peer`.
    ///
    /// - Returns: the number of devices that got it.
    /// - Throws: `.storageUnavailable`.
    package func tell(_ peer: UserID, _ event: EphemeralEvent, from user: UserID) async throws(HermesError) -> Int {
        try await contacts.mayWrite(user, to: peer) ? devices.notify(peer, event) : 0
    }

    /// Sends an ephemeral event that only contacts may send to each other, such as a signal: signals make telephones
    /// ring and contain network addresses. An account may also send such an event to its own other devices.
    ///
    /// - Returns: the number of devices that got it.
    /// - Throws: `.forbidden` unless the two are contacts; the error does not reveal whether `peer` blocks `user` or
    ///   exists at all; `.storageUnavailable`.
    package func tellContact(
        _ peer: UserID,
        _ event: EphemeralEvent,
        from user: UserID
    ) async throws(HermesError) -> Int {
        try await checkLink(user, peer)
        return devices.notify(peer, event)
    }

    /// - Throws: `.forbidden` unless the two are contacts or the same account; `.storageUnavailable`.
    package func checkLink(_ user: UserID, _ peer: UserID) async throws(HermesError) {
        if user == peer { return }
        guard try await contacts.areContacts(user, peer) else {
            throw Self.notAContact
        }
    }
}
