// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of items in a batch: as many as the store commits in one transaction, and a little more. An item that
/// comes while a transaction runs takes its turn in the next batch, instead of waiting for a batch of many
/// transactions. Pure.
struct BatchPace: Sendable {
    /// Whatever the store takes: a single slow item says little about the next ones.
    private static let least = 16

    private let most: Int
    /// The most items in the next batch.
    private(set) var count: Int

    /// Begins with the most.
    init(most: Int) {
        self.most = max(1, most)
        count = self.most
    }

    /// The store has committed the first of these items in one transaction.
    mutating func committed(_ part: Int, of batch: Int) {
        guard part > 0 else { return }
        if part < batch {
            count = min(most, max(Self.least, part))
        } else if batch >= count {
            count = min(most, count + max(Self.least, count / 4))
        }
    }
}
