// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import Metrics
import NIOCore

/// SUBSCRIBE and UNSUBSCRIBE (3.8 to 3.11).
extension MQTTSession {
    /// A filter that was granted.
    private struct Granted {
        let text: String
        let filter: TopicFilter
        let group: String?
        var options: SubscriptionOptions
        let handling: MQTTSubscription.RetainHandling
        let isNew: Bool
    }

    func subscribeReceived(_ packet: MQTTSubscribe) throws(MQTTPacketError) {
        guard let client else { return }
        let identifier: Int? = packet.properties.first {
            if case .subscriptionIdentifier(let number) = $0 { number } else { nil }
        }
        var reasons: [MQTTReasonCode] = []
        var granted: [Granted] = []
        var newCount = 0
        for wanted in packet.subscriptions {
            switch grant(wanted, identifier: identifier, of: client, newCount: newCount) {
            case .success(let subscription):
                if subscription.isNew { newCount += 1 }
                granted.append(subscription)
                reasons.append(MQTTTranslation.granted(subscription.options.qos))
            case .failure(let refusal):
                reasons.append(refusal.reason)
            }
        }
        let suback = MQTTSuback(packetID: packet.packetID, reasons: reasons)
        guard client.durable != nil, let link = client.link, !granted.isEmpty else {
            for subscription in granted { hold(subscription, of: client) }
            write(.suback(suback))
            for subscription in granted { queueRetained(subscription, of: client) }
            return sendRetained(client)
        }
        let list = granted.map { DurableSubscription(filter: $0.text, options: $0.options) }
        let service = environment.messenger.durable
        connection.ask { completion in
            service.subscribe(link.id, list, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            subscribed(result, granted, suback, of: client)
        }
    }

    private func subscribed(
        _ result: Result<Void, HermesError>,
        _ granted: [Granted],
        _ suback: MQTTSuback,
        of client: MQTTClientState
    ) {
        switch result {
        case .success:
            for subscription in granted { hold(subscription, of: client) }
            write(.suback(suback))
            for subscription in granted { queueRetained(subscription, of: client) }
            sendRetained(client)
        case .failure:
            var failed = suback
            failed.reasons = suback.reasons.map { $0.isFailure ? $0 : .unspecifiedError }
            write(.suback(failed))
        }
    }

    private struct Refusal: Error {
        let reason: MQTTReasonCode
    }

    private func grant(
        _ wanted: MQTTSubscription,
        identifier: Int?,
        of client: MQTTClientState,
        newCount: Int
    ) -> Result<Granted, Refusal> {
        guard MQTTTopic.isValidFilter(wanted.filter) else { return .failure(Refusal(reason: .topicFilterInvalid)) }
        let shared = MQTTTopic.sharedParts(of: wanted.filter)
        let text = shared.map { String($0.filter) } ?? wanted.filter
        guard let filter = TopicFilter(text) else { return .failure(Refusal(reason: .topicFilterInvalid)) }
        let access = client.access(environment.access).access(toSubscribe: text)
        guard access != .none else {
            gateway.metrics.refusedSubscriptions.increment()
            return .failure(Refusal(reason: .notAuthorized))
        }
        let isNew = client.subscriptions[wanted.filter] == nil
        guard !isNew || client.subscriptions.count + newCount < gateway.settings.maxSubscriptionsPerSession else {
            return .failure(Refusal(reason: .quotaExceeded))
        }
        let options = SubscriptionOptions(
            qos: MQTTTranslation.qos(wanted.maximumQoS),
            noLocal: wanted.noLocal,
            retainAsPublished: wanted.retainAsPublished,
            identifiers: identifier.map { [UInt32(clamping: $0)] } ?? [],
            isLiveAtMostOnceOnly: client.durable != nil,
            isFiltered: access == .some
        )
        return .success(
            Granted(
                text: wanted.filter,
                filter: filter,
                group: shared.map { String($0.group) },
                options: options,
                handling: wanted.retainHandling,
                isNew: isNew
            )
        )
    }

    /// From now on the client gets what matches.
    private func hold(_ granted: Granted, of client: MQTTClientState) {
        hold(granted.text, granted.filter, group: granted.group, granted.options, of: client)
    }

    func hold(
        _ text: String,
        _ filter: TopicFilter,
        group: String?,
        _ options: SubscriptionOptions,
        of client: MQTTClientState
    ) {
        if let known = client.subscriptions[text] {
            known.live?.options = options
            known.shared?.options = options
            client.subscriptions[text]?.options = options
            return
        }
        if group == nil, MQTTInbox.isAskedFor(by: filter) { openInbox(filter, options.qos, of: client) }
        var held = MQTTHeldSubscription(options: options)
        if let group {
            held.shared = topics.subscribe(self, sharing: group, to: filter, options: options)
        } else {
            held.live = topics.subscribe(self, to: filter, options: options)
        }
        client.subscriptions[text] = held
        if options.isFiltered { client.hasFilteredSubscriptions = true }
    }

    /// Retained messages that a new subscription wants [MQTT-3.3.1-9] … [MQTT-3.3.1-11].
    private func queueRetained(_ granted: Granted, of client: MQTTClientState) {
        guard granted.group == nil else { return }  // [MQTT-4.8.2] shared subscriptions get none
        switch granted.handling {
        case .sendAlways: break
        case .sendIfNew where granted.isNew: break
        case .sendIfNew, .doNotSend: return
        }
        for publication in environment.brokerStatistics.publications(matching: granted.filter) {
            client.retained.append(
                MQTTRetainedDelivery(
                    publication: publication,
                    qos: .atMostOnce,
                    identifiers: granted.options.identifiers
                )
            )
        }
        let now = now()
        for stored in environment.messenger.durable.retained.matching(granted.filter, now: now) {
            guard
                !granted.options.isFiltered
                    || client.access(environment.access).allows(.subscribe, stored.topic.rawValue)
            else { continue }
            if client.durable != nil, let link = client.link, min(stored.qos, granted.options.qos) > .atMostOnce {
                environment.messenger.durable.queue(stored, for: link.id, granted.options)
            } else {
                client.retained.append(
                    MQTTRetainedDelivery(
                        publication: Publication(stored),
                        qos: granted.options.qos,
                        identifiers: granted.options.identifiers
                    )
                )
            }
        }
    }

    // MARK: UNSUBSCRIBE

    func unsubscribeReceived(_ packet: MQTTUnsubscribe) throws(MQTTPacketError) {
        guard let client else { return }
        var reasons: [MQTTReasonCode] = []
        var gone: [String] = []
        for filter in packet.filters {
            guard MQTTTopic.isValidFilter(filter) else {
                reasons.append(.topicFilterInvalid)
                continue
            }
            guard let held = client.subscriptions.removeValue(forKey: filter) else {
                reasons.append(.noSubscriptionExisted)
                continue
            }
            letGo(held)
            gone.append(filter)
            reasons.append(.success)
        }
        let unsuback = MQTTUnsuback(packetID: packet.packetID, reasons: reasons)
        guard client.durable != nil, let link = client.link, !gone.isEmpty else { return write(.unsuback(unsuback)) }
        let service = environment.messenger.durable
        let filters = gone
        connection.ask { completion in
            service.unsubscribe(link.id, filters, completion: completion)
        } then: { [self] (_: Result<Void, HermesError>) in
            write(.unsuback(unsuback))
        }
    }

    func letGo(_ held: MQTTHeldSubscription) {
        if let live = held.live { topics.unsubscribe(live) }
        if let shared = held.shared { topics.unsubscribe(shared, givingBack: takeBack(shared)) }
    }

    /// What was delivered for a shared subscription and is not acknowledged: it is for the group's others
    /// [MQTT-4.8.2-4] … [MQTT-4.8.2-6].
    private func takeBack(_ subscription: SharedSubscription) -> [Publication] {
        guard let shared = client?.shared else { return [] }
        let numbers = shared.unacknowledged.filter { $0.value.subscription === subscription }.keys.sorted()
        var publications = numbers.compactMap { shared.unacknowledged.removeValue(forKey: $0)?.publication }
        publications += waiting?.take(of: subscription) ?? []
        if waiting?.isEmpty ?? false { waiting = nil }
        shared.load.subtract(publications.count)
        return publications
    }
}
