// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Deletes an account for good, with everything that belongs to it alone; its connections are told
    /// ``SessionEnd/accountDeleted``.
    ///
    /// It is first locked out, so that nobody is logged in during the deletion. The rest takes as many commits as the
    /// account's size needs (``AccountDeletions``). If the call fails before the first of them, the account is disabled
    /// and the call can be repeated; after it, the server continues by itself.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func deleteAccount(_ user: UserID) async throws(HermesError) {
        try await accounts.close(user)
        try await deletions.delete(user)
        pushTokens.forget(user)
    }
}
