// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Deletes an account for good, with everything that belongs to it alone; its connections are told
    /// ``AttachmentEnd/accountDeleted``.
    ///
    /// First the account is locked out, so that nobody is logged in when it is deleted. The messages that its members
    /// of shared subscriptions leave behind go to others. The rest takes several commits, depending on the size of the
    /// account (``AccountDeletions``). If a call fails before the first of these commits, the account stays disabled,
    /// and the call can be repeated. After that commit the server continues by itself. The last commit keeps the name
    /// (``KeptName``): nobody can take it until nothing is retained below it.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func deleteAccount(_ user: UserID) async throws(HermesError) {
        let name = try await accounts.close(user)
        try await durable.ended(.account(user))
        try await deletions.delete(user)
        pushTokens.forget(user)
        // If the account was enabled meanwhile, somebody may have logged in.
        devices.end(user, .accountDeleted, .all)
        accounts.endTopicClients(user, name.key, .accountDeleted, .all)
        // Usually the name is free when the caller knows; else the housekeeping goes on.
        await accounts.free(name, givenUpAt: time.uptime())
    }
}
