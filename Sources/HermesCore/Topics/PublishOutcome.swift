// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The subscribers on this loop that got it, or get it after the present publication.
    package let localCount: Int
    /// Whether another loop is far behind: the publisher should pause reading.
    package let isCongested: Bool
    /// Whether a subscription matches, on this loop or another.
    package let matchedAnywhere: Bool

    package init(localCount: Int, isCongested: Bool, matchedAnywhere: Bool = false) {
        self.localCount = localCount
        self.isCongested = isCongested
        self.matchedAnywhere = matchedAnywhere
    }
}
