// Hermes
// SPDX-License-Identifier: Apache-2.0

extension DurableSessions {
    /// The most sessions of one page.
    package static let maxListed = 200

    /// Stored sessions with an id above `id` (nil: from the first), ascending, without their subscriptions. Reads the store,
    /// and neither waits for a commit nor delays one.
    ///
    /// - Parameter text: only those whose client id or owner contains it, with ASCII letters in either case.
    package func list(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int
    ) async throws(HermesError) -> [StoredSession] {
        try await store.sessions(after: id, containing: text, limit: min(max(1, limit), Self.maxListed))
    }
}
