// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

@testable import HermesPush

extension WebhookPoster {
    /// Posts due events, at most one batch, and waits for all of them.
    func postDue() async throws(HermesError) -> Round {
        let (round, workers) = try await takeDue(limit: Self.batch)
        await withDiscardingTaskGroup { group in
            for _ in 0..<workers { group.addTask { [self] in await work(on: round) } }
        }
        return try await settle(round, after: nil)
    }
}
