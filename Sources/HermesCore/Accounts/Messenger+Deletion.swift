// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Permanently deletes an account and everything that belongs only to this account. The account's connections end
    /// with ``AttachmentEnd/accountDeleted``.
    ///
    /// First the account is disabled, so that nobody is logged in when the account is deleted. The account's MQTT
    /// sessions end, and messages of shared subscriptions that waited for these sessions go to other members. The
    /// account is then deleted in one or more commits, depending on its size (``AccountDeletions``). If one of these
    /// commits fails, the call throws, but the server repeats the commit and completes the deletion by itself, even if
    /// the account is enabled meanwhile. If the server stops before the first of these commits has succeeded, or if the
    /// MQTT sessions cannot be ended, the account stays disabled, and the call can be repeated. The last commit reserves
    /// the name (``KeptName``): nobody can take the name while publications are retained below `user/NAME/`.
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
        // Usually this frees the name before the call returns; otherwise the housekeeping frees it later.
        await accounts.free(name, givenUpAt: time.uptime())
    }
}
