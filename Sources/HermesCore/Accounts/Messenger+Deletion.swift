// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Messenger {
    /// Deletes an account for good, with all that is its own; its connections are told ``SessionEnd/accountDeleted``.
    ///
    /// First it is locked out, so that nobody is logged in when it goes; the rest is one commit. A call that failed in
    /// between leaves a disabled account, and can be made again.
    ///
    /// - Throws: `.notFound`, `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func deleteAccount(_ user: UserID) async throws(HermesError) {
        try await accounts.close(user)
        let result = await withCheckedContinuation { continuation in
            messages.committer.submit(.deleteAccount(user), .done { continuation.resume(returning: $0) })
        }
        try result.get()
        pushTokens.forget(user)
    }
}
