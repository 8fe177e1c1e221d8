// Hermes
// SPDX-License-Identifier: Apache-2.0

extension DurableSessions {
    /// The largest number of sessions in one page.
    package static let maxListed = 200

    /// Returns stored sessions in ascending order of their ids, without their subscriptions. This function reads from
    /// the store. It neither waits for a commit nor delays a commit.
    ///
    /// - Parameters:
    ///   - id: only sessions with a higher id are returned; nil to begin with the first session.
    ///   - text: only sessions whose client id or owner's name contains this text are returned; the case of ASCII
    ///     letters does not matter.
    ///   - searched: the largest number of sessions to look at.
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
