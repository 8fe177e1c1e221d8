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
}
