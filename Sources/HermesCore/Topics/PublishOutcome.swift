// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What became of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The subscribers on this loop that got it, or get it after the publication under way.
    package let localCount: Int
    /// Another loop is far behind: the publisher should stop reading for a while.
    package let isCongested: Bool
    /// Somebody, on this loop or another, has a subscription that matches.
    package let matchedAnywhere: Bool

    package init(localCount: Int, isCongested: Bool, matchedAnywhere: Bool = false) {
        self.localCount = localCount
        self.isCongested = isCongested
        self.matchedAnywhere = matchedAnywhere
    }
}
