// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Handling of UNSUBSCRIBE (3.10, 3.11), and the end of subscriptions.
extension MQTTConnection {
    /// An UNSUBSCRIBE packet and the decisions about its filters so far.
    private final class Removal {
        var filters: MQTTFilterList
        var reasons: [MQTTReasonCode] = []
        var gone: [TopicText] = []
        /// The texts in ``gone``.
        var isGone: Set<TopicText> = []

        init(_ filters: MQTTFilterList) { self.filters = filters }

        var unsuback: MQTTUnsuback { MQTTUnsuback(packetID: filters.packetID, reasons: reasons) }
    }

    func unsubscribeReceived(_ filters: MQTTFilterList) {
        guard let client else { return }
        let removal = Removal(filters)
        decideInTurns(filters.count, of: client) { [self] () throws(MQTTPacketError) in
            decideRemoval(try removal.filters.nextFilter(), removal, of: client)
        } then: { [self] in
            decided(removal, of: client)
        }
    }

    /// Decides about one filter of an UNSUBSCRIBE.
    ///
    /// - Returns: the number of the filter's levels; 0 for a filter without wildcards.
    private func decideRemoval(_ filter: String, _ removal: Removal, of client: MQTTClientState) -> Int {
        let text = TopicText(filter)
        if client.subscriptions[text] != nil, removal.isGone.insert(text).inserted {
            removal.gone.append(text)
            removal.reasons.append(.success)
        } else {
            removal.reasons.append(.noSubscriptionExisted)
        }
        return TopicShape(of: filter).levels
    }

    private func decided(_ removal: Removal, of client: MQTTClientState) {
        let gone = removal.gone
        let unsuback = removal.unsuback
        guard client.durable != nil, let link = client.link, let id = link.id, !gone.isEmpty else {
            return drop(gone, unsuback, of: client)
        }
        let service = environment.messenger.durable
        let filters = gone.map(\.rawValue)
        connection.ask { completion in
            service.unsubscribe(id, filters, source: link.source) { completion(.success($0)) }
        } then: { [self] (result: Result<FilterChange, HermesError>) in
            unsubscribed(FilterChange(result), gone, unsuback, of: client)
        }
    }

    /// Handles the store's answer. A subscription that the store could not remove stays, because it would return with
    /// the next connection anyway.
    private func unsubscribed(
        _ change: FilterChange,
        _ gone: [TopicText],
        _ unsuback: MQTTUnsuback,
        of client: MQTTClientState
    ) {
        guard phase == .connected else { return }
        guard let error = change.error else { return drop(gone, unsuback, of: client) }
        guard version == .v5 else {
            // In 3.1.1 the request cannot be refused, so the client has to repeat it over another connection.
            return end(because: error)
        }
        var unsuback = unsuback
        unsuback.reasons = Self.reasons(unsuback.reasons, ofFirst: change.done, else: .unspecifiedError) {
            $0 == .success
        }
        drop(Array(gone.prefix(change.done)), unsuback, of: client)
    }

    /// Ends the subscriptions, and answers.
    private func drop(_ gone: [TopicText], _ unsuback: MQTTUnsuback, of client: MQTTClientState) {
        connection.inSlices(gone.count, of: Self.filtersPerTurn) { [self] slice in
            var ended: [MQTTHeldSubscription] = []
            for text in gone[slice] {
                // An operator may have ended the subscription meanwhile.
                if let held = client.subscriptions.end(text) { ended.append(held) }
            }
            endSubscriptions(ended, of: client)
            measureMemory()
        } then: { [self] in
            adjustInbox(of: client)
            write(.unsuback(unsuback))
        }
    }

    /// Ends subscriptions. The time is linear in the number of subscriptions and of waiting messages.
    func endSubscriptions(_ ended: [MQTTHeldSubscription], of client: MQTTClientState) {
        var back = takeBackMessages(of: ended, from: client)
        for held in ended { unsubscribe(held, &back) }
    }

    private func unsubscribe(_ held: MQTTHeldSubscription, _ back: inout [ObjectIdentifier: [Publication]]) {
        if let live = held.live { topics.unsubscribe(live) }
        if let shared = held.shared {
            topics.unsubscribe(shared, givingBack: back.removeValue(forKey: ObjectIdentifier(shared)) ?? [])
        }
    }

    /// Ends all subscriptions of an ended connection, in several turns of the loop if there are many. The connection
    /// gets no messages meanwhile.
    func letGoOfAll(of client: MQTTClientState) {
        let ended = Array(client.subscriptions.held.values)
        let lease = client.subscriptions.lease
        leaveGroups(of: client)
        var back = takeBackMessages(of: ended, from: client)
        connection.loop.finishLater(ended.count) { [self] slice in
            // Searches still use a filter until it is removed. So the lease keeps the filter's shape counted.
            withExtendedLifetime(lease) { for held in ended[slice] { unsubscribe(held, &back) } }
        }
    }

    /// Lets the groups of shared subscriptions choose other members from now on. ``letGo()`` must follow.
    func leaveGroups() {
        if let client { leaveGroups(of: client) }
    }

    private func leaveGroups(of client: MQTTClientState) {
        for held in client.subscriptions.held.values { held.shared?.leave() }
    }

    private func takeBackMessages(
        of ended: [MQTTHeldSubscription],
        from client: MQTTClientState
    ) -> [ObjectIdentifier: [Publication]] {
        let subscriptions = Set(ended.compactMap(\.shared).map(ObjectIdentifier.init))
        return subscriptions.isEmpty ? [:] : takeBack(subscriptions, from: client.shared)
    }

    /// Takes back the unacknowledged and the waiting messages of shared subscriptions, for the groups' other members.
    /// Waiting messages that have expired are dropped. Messages that were sent with QoS 2 are not returned, because no
    /// other member may get them [MQTT-4.8.2-5].
    private func takeBack(
        _ subscriptions: Set<ObjectIdentifier>,
        from shared: MQTTSharedState
    ) -> [ObjectIdentifier: [Publication]] {
        var publications: [ObjectIdentifier: [Publication]] = [:]
        var count = 0
        var examined = shared.unacknowledged.count
        if outbound.waiting.holdsAny(of: subscriptions) { examined += outbound.waiting.count }
        let numbers = shared.unacknowledged
            .filter { subscriptions.contains(ObjectIdentifier($0.value.subscription)) }.keys.sorted()
        for number in numbers {
            guard let taken = shared.forget(number) else { continue }
            count += 1
            guard taken.qos < .exactlyOnce else { continue }
            publications[ObjectIdentifier(taken.subscription), default: []].append(taken.publication)
        }
        let now = now()
        for message in outbound.waiting.take(of: subscriptions) {
            guard let subscription = message.shared else { continue }
            count += 1
            guard message.publication.details?.hasExpired(at: now) != true else {
                dropped(.expired)
                continue
            }
            publications[ObjectIdentifier(subscription), default: []].append(message.publication)
        }
        shared.load.subtract(count)
        if count > 0 { shared.load.isFull = false }
        measureMemory()
        // The cost is charged last, because the charge may end the connection.
        connection.chargeInTheEnd(.records(examined))
        return publications
    }
}
