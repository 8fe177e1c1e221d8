// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOCore

/// Publishing for accounts whose protocols have no topics.
extension Connection {
    /// Publishes for an account. A publication for kept sessions, which outlive their connections, is stored first;
    /// connected subscribers then get it after the commit. The account pays for the storing and for the delivery.
    ///
    /// - Parameter later: called on the loop with the result of the commit, if the publication had to be stored. The
    ///   answer to the peer waits for nothing else.
    /// - Returns: whether the topic has a subscriber; nil if `later` will be called instead.
    package func publish(
        _ publication: Publication,
        by principal: Principal,
        through messenger: Messenger,
        later: @escaping (Result<Void, HermesError>) -> Void
    ) -> Bool? {
        tally.messagesIn += 1
        charge(.bytes(publication.payload.readableBytes))
        let durable = messenger.durable
        let targets = durable.hasSubscriptions ? durable.targets(of: publication.topic) : []
        guard !targets.isEmpty else { return deliver(publication) }
        let stored = StoredPublication(publication, publishedAt: messenger.time.now())
        let bytes = stored.weight
        charge(.queues(durable.reach(of: stored, to: targets)))
        requestStarted(bytes: bytes)
        let live = publication.deciding(DecidedShares(targets))
        let later = loop.bound(later)
        durable.publish(stored, targets: targets, source: source(of: principal)) { result in
            self.loop.post(
                .run {
                    self.requestAnswered(bytes: bytes)
                    // The publication is delivered even if the publisher has gone, because it is stored and is now
                    // the next publication in order.
                    if case .success = result { _ = self.deliver(live) }
                    later.value(result)
                }
            )
        }
        return nil
    }

    /// Returns the source that waits and pays for an operation of a principal: the principal's account, or the client's
    /// address if the client only claims to have this account.
    func source(of principal: Principal) -> CommitSource {
        principal.isProven ? .account(principal.user) : address
    }

    /// Whether the members of a room are notified that this client joins. Called once for each join. The client's
    /// address pays for the join.
    func tellsArrival(in room: TopicName) -> Bool { loop.tellsArrival(in: room, by: address) }

    /// Delivers a publication to connected subscribers.
    ///
    /// - Returns: whether the topic has a subscriber.
    private func deliver(_ publication: Publication) -> Bool {
        let outcome = loop.topics.publish(publication, isPaced: isOpen)
        keepPace(with: outcome)
        charge(.viewers(outcome.localCount))
        return outcome.matchedAnywhere
    }
}
