// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Retained messages for new subscriptions [MQTT-3.3.1-6].
extension MQTTConnection {
    /// Queues a search for a subscription's retained messages [MQTT-3.3.1-9] … [MQTT-3.3.1-11].
    func wantRetained(
        _ request: MQTTRetainedQueue.Request,
        _ handling: MQTTSubscription.RetainHandling,
        isNew: Bool,
        of client: MQTTClientState
    ) {
        guard gateway.settings.isRetainAvailable else { return }
        switch handling {
        case .sendAlways: break
        case .sendIfNew where isNew: break
        case .sendIfNew, .doNotSend: return
        }
        let queue = client.retained ?? MQTTRetainedQueue()
        queue.append(request)
        client.retained = queue
    }

    /// Sends as many retained messages as the client can accept now, and searches in small steps.
    func sendRetained(_ client: MQTTClientState) {
        guard let queue = client.retained, !queue.isPaused else { return }
        var steps = MQTTRetainedQueue.stepsAtOnce
        defer {
            queue.isFresh = false
            connection.charge(.records(MQTTRetainedQueue.stepsAtOnce - steps))
            measureMemory()
        }
        while connection.keepsUp {
            if let found = queue.first, let request = queue.current {
                guard let options = client.subscriptions[TopicText(request.text)]?.options else {
                    // The subscription has ended.
                    _ = queue.takeFound()
                    continue
                }
                if let link = client.link, client.durable != nil, options.qos > .atMostOnce {
                    let isFresh = queue.isFresh
                    let publications = queue.takeFound().compactMap { present($0, isFresh: isFresh) }
                    return store(publications.map { StoredPublication($0, publishedAt: now()) }, options, link)
                }
                if let publication = present(found, isFresh: queue.isFresh) {
                    guard sendRetained(publication, options) else { return }
                }
                queue.popFirst()
            } else if steps <= 0 || !connection.loop.hasTime() {
                return sendRetainedLater(queue)
            } else {
                let isMore = queue.advance(in: environment.messenger.durable.retained, now: now(), steps: &steps) {
                    environment.brokerStatistics.publications(matching: $0)
                }
                if !isMore {
                    client.retained = nil
                    return
                }
            }
        }
    }

    /// Returns the publication to send for a found publication. This is the topic's present retained publication,
    /// because the client may have received a newer publication live since the search.
    ///
    /// - Parameter isFresh: whether the publication was found in the present turn of the loop.
    /// - Returns: nil if the topic has no retained publication any more.
    private func present(_ found: MQTTRetainedQueue.Found, isFresh: Bool) -> Publication? {
        guard !isFresh, !found.isOwn else { return found.publication }
        let retained = environment.messenger.durable.retained
        return retained.publication(of: found.publication.topic).map { Publication($0) }
    }

    /// Sends one retained message, if the client may read it and it has not expired.
    ///
    /// - Parameter options: the present options of the subscription.
    /// - Returns: false if the client must acknowledge other messages first.
    private func sendRetained(_ publication: Publication, _ options: SubscriptionOptions) -> Bool {
        guard isWanted(publication, options) else { return true }
        let qos = min(publication.qos, options.qos)
        guard qos > .atMostOnce else {
            sendOnce(publication, isRetained: true, identifiers: options.identifiers)
            return true
        }
        guard outbound.hasRoom else { return false }
        sendAcknowledged(
            MQTTWaitingQueue.Message(
                publication: publication,
                qos: qos,
                isRetained: true,
                identifiers: options.identifiers
            )
        )
        return true
    }

    private func isWanted(_ publication: Publication, _ options: SubscriptionOptions) -> Bool {
        if let details = publication.details, details.hasExpired(at: now()) {
            dropped(.expired)
            return false
        }
        return !options.isFiltered || mayRead(publication.topic)
    }

    private func sendRetainedLater(_ queue: MQTTRetainedQueue) {
        queue.isPaused = true
        connection.loop.inTurn { [self] in goOnWithRetained() }
    }

    private func goOnWithRetained() {
        guard phase == .connected, let client else { return }
        client.retained?.isPaused = false
        sendRetained(client)
    }

    /// Appends retained messages of QoS 1 and 2 to the queue of a durable session. Messages of QoS 0 are sent at once.
    private func store(
        _ publications: [StoredPublication],
        _ options: SubscriptionOptions,
        _ link: MQTTSessionLink
    ) {
        guard let client, let queue = client.retained, let id = link.id else { return }
        let wanted = publications.filter { isWanted(Publication($0), options) }
        for stored in wanted where stored.qos == .atMostOnce {
            sendOnce(Publication(stored), isRetained: true, identifiers: options.identifiers)
        }
        let stored = wanted.filter { $0.qos > .atMostOnce }
        guard !stored.isEmpty else { return sendRetainedLater(queue) }
        queue.isPaused = true
        let loop = connection.loop
        let bound = loop.bound(self)
        let count = stored.count
        environment.messenger.durable.queue(stored, for: id, options, source: link.source) { left in
            loop.post(.run { bound.value.retainedStored(but: left.map(\.topic), of: count) })
        }
    }

    /// Continues after messages were stored. If messages could not be queued, because the queue is full or the store
    /// failed, the server tries again while the connection lasts. For each topic, it then queues the message that is
    /// retained at that time.
    private func retainedStored(but left: [TopicName], of count: Int) {
        guard !left.isEmpty else { return goOnWithRetained() }
        guard let pause = client?.retained?.nextRetryPause(isStuck: left.count == count) else { return }
        connection.loop.eventLoop.assumeIsolated().scheduleTask(in: pause) { [self] in storeRetainedAgain(left) }
    }

    private func storeRetainedAgain(_ left: [TopicName]) {
        guard phase == .connected, let queue = client?.retained else { return }
        let retained = environment.messenger.durable.retained
        let now = now()
        queue.putBack(
            left.compactMap { retained.publication(of: $0) }.filter { !$0.hasExpired(at: now) }.map { Publication($0) }
        )
        goOnWithRetained()
    }
}
