// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The number of subscribers on this loop that got the publication or will get it later.
    package let localCount: Int
    /// Whether another loop is far behind with its deliveries. If so, the caller should pause reading from the
    /// publisher.
    package let isCongested: Bool
    /// The ticket, if the subscribers on this loop get the publication later; otherwise nil. They get it later if there
    /// are very many of them and the loop is behind with its output. The publisher should wait until they have got the
    /// publication (``TopicShard/isWaiting(_:)``).
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

/// The ticket of a publication that waits for its delivery to a crowd: the many subscribers of its topic on this loop.
package struct CrowdTicket: Sendable, Hashable {
    let number: UInt64
    /// The size of the publication for the limits of queues, in bytes.
    package let weight: Int
}
