// Hermes
// SPDX-License-Identifier: Apache-2.0

extension DurableSessions {
    /// The most sessions of one page.
    package static let maxListed = 200

    /// Stored sessions with an id above `id` (nil: from the first), ascending, without their subscriptions. Reads the
    /// store, and neither waits for a commit nor delays one.
    ///
    /// - Parameters:
    ///   - text: only those whose client id or owner's name contains it, with ASCII letters in either case.
    ///   - searched: the most sessions to look at.
    package func list(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int,
        searched: Int = .max
    ) async throws(HermesError) -> [StoredSession] {
        let limit = min(max(1, limit), Self.maxListed)
        return try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.sessions(after: id, containing: text, limit: limit, searched: searched)
        }
    }
}
