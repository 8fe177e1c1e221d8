// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The subscribers on this loop that got it, or get it later.
    package let localCount: Int
    /// Whether another loop is far behind: the publisher should pause reading.
    package let isCongested: Bool
    /// Set if the subscribers on this loop get the publication later, because there are very many of them and they are
    /// behind. The publisher should wait for them (``TopicShard/isWaiting(_:)``).
    package let ticket: CrowdTicket?
    /// Whether a subscription matches, on this loop or another.
    package let matchedAnywhere: Bool

    package init(localCount: Int, isCongested: Bool, ticket: CrowdTicket? = nil, matchedAnywhere: Bool = false) {
        self.localCount = localCount
        self.isCongested = isCongested
        self.ticket = ticket
        self.matchedAnywhere = matchedAnywhere
    }
}

/// A publication that waits for a crowd.
package struct CrowdTicket: Sendable, Hashable {
    let number: UInt64
    /// The size that it counts for in queues.
    package let weight: Int
}
