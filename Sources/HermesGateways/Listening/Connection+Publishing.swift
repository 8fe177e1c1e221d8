// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOCore

/// Publications of accounts over protocols without topics of their own.
extension Connection {
    /// Publishes for an account: has the publication stored for subscribers that are away, and delivers it to those who
    /// are connected, after the commit. The account pays for both.
    ///
    /// - Parameter later: called on the loop with the result of the commit, if the publication had to be stored. The
    ///   answer does not wait for anything else.
    /// - Returns: whether anybody is subscribed; nil if `later` is called.
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
        let loop = loop
        let live = publication.deciding(DecidedShares(targets))
        let waiting = NIOLoopBound((connection: self, later: later), eventLoop: loop.eventLoop)
        durable.publish(stored, targets: targets, source: source(of: principal)) { result in
            loop.post(
                .run {
                    waiting.value.connection.requestAnswered(bytes: bytes)
                    // Even if the publisher has gone: it is stored, and its turn has come.
                    if case .success = result { _ = waiting.value.connection.deliver(live) }
                    waiting.value.later(result)
                }
            )
        }
        return nil
    }

    /// The source that waits and pays for an operation of a principal: its account, or the address of a client that
    /// only claims to be it.
    func source(of principal: Principal) -> CommitSource {
        principal.isProven ? .account(principal.user) : address
    }

    /// Whether those in a room are told that this client joins; called once for each join. The client's address pays
    /// for the join.
    func tellsArrival(in room: TopicName) -> Bool { loop.tellsArrival(in: room, by: address) }

    /// - Returns: whether anybody is subscribed.
    private func deliver(_ publication: Publication) -> Bool {
        let outcome = loop.topics.publish(publication, isPaced: isOpen)
        keepPace(with: outcome)
        charge(.viewers(outcome.localCount))
        return outcome.matchedAnywhere
    }
}
