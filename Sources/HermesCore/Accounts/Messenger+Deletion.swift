// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Deletes an account for good, with everything that belongs to it alone; its connections are told
    /// ``AttachmentEnd/accountDeleted``.
    ///
    /// First it is locked out, so that nobody is logged in when it goes, and others get what its members of shared
    /// subscriptions leave behind. The rest takes as many commits as it has much (``AccountDeletions``). A call that failed
    /// before the first of them leaves a disabled account, and can be made again; after it the server goes on by itself.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func deleteAccount(_ user: UserID) async throws(HermesError) {
        try await accounts.close(user)
        try await durable.ended(.account(user))
        try await deletions.delete(user)
        pushTokens.forget(user)
    }
}
