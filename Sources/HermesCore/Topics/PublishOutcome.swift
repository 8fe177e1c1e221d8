// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The number of subscribers on this loop that got the publication or will get it later.
    package let localCount: Int
    /// Whether another loop is far behind, so that the caller should pause reading from the publisher.
    package let isCongested: Bool
    /// The ticket, if the subscribers on this loop get the publication later, because there are very many of them and
    /// they are behind; otherwise nil. The publisher should wait until they have got it (``TopicShard/isWaiting(_:)``).
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

/// The ticket of a publication that waits for its crowd: the many subscribers of its topic on this loop.
package struct CrowdTicket: Sendable, Hashable {
    let number: UInt64
    /// The size with which the publication counts in queues, in bytes.
    package let weight: Int
}
