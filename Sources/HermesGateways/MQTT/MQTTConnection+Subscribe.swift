// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import Metrics
import NIOCore

/// SUBSCRIBE and UNSUBSCRIBE (3.8 to 3.11).
extension MQTTConnection {
    /// A granted filter.
    private struct Granted {
        let text: String
        let filter: TopicFilter
        let group: String?
        var options: SubscriptionOptions
        let handling: MQTTSubscription.RetainHandling
        let isNew: Bool
        /// The number of the rules that it was decided by.
        let generation: UInt64
        /// Of a new shared subscription.
        let place: MQTTSharedQuota.Place?

        /// Whether it opens the account's inbox.
        var isInbox: Bool { group == nil && MQTTInbox.isAskedFor(by: filter) }
    }

    /// A SUBSCRIBE packet and the decisions about its filters so far.
    private final class Request {
        let packetID: UInt16
        let wanted: [MQTTSubscription]
        let identifier: Int?
        var reasons: [MQTTReasonCode] = []
        var granted: [Granted] = []
        /// The new subscriptions among them.
        var new = (count: 0, bytes: 0)

        init(_ packet: MQTTSubscribe) {
            packetID = packet.packetID
            wanted = packet.subscriptions
            identifier = packet.properties.first {
                if case .subscriptionIdentifier(let number) = $0 { number } else { nil }
            }
        }

        var suback: MQTTSuback { MQTTSuback(packetID: packetID, reasons: reasons) }
    }

    func subscribeReceived(_ packet: MQTTSubscribe) throws(MQTTPacketError) {
        guard let client else { return }
        takeTurns(packet.subscriptions.lazy.map(\.filter), of: client)
        let request = Request(packet)
        connection.inSlices(request.wanted.count, of: Self.filtersPerTurn) { [self] slice in
            for wanted in request.wanted[slice] { decide(wanted, request, of: client) }
        } then: { [self] in
            decided(request, of: client)
        }
    }

    private func decide(_ wanted: MQTTSubscription, _ request: Request, of client: MQTTClientState) {
        // More than a session may have are the same ones again and again.
        guard request.granted.count < gateway.settings.maxSubscriptionsPerSession else {
            return request.reasons.append(.quotaExceeded)
        }
        switch grant(wanted, identifier: request.identifier, of: client, new: request.new) {
        case .success(let subscription):
            if subscription.isNew {
                request.new = (request.new.count + 1, request.new.bytes + wanted.filter.utf8.count)
            }
            request.granted.append(subscription)
            request.reasons.append(MQTTTranslation.granted(subscription.options.qos))
        case .failure(let refusal):
            request.reasons.append(refusal.reason)
        }
    }

    private func decided(_ request: Request, of client: MQTTClientState) {
        let granted = request.granted
        guard let account = client.account, account.login == nil, granted.contains(where: \.isInbox) else {
            return grant(granted, request.suback, to: client)
        }
        openDevice(of: account) { [self] error in
            guard let error else { return grant(granted, request.suback, to: client) }
            var suback = request.suback
            let refused = Set(granted.filter(\.isInbox).map(\.text))
            for subscription in granted where subscription.isInbox { giveBack(subscription, of: client) }
            for (index, wanted) in request.wanted.enumerated()
            where refused.contains(wanted.filter) && index < suback.reasons.count && !suback.reasons[index].isFailure {
                suback.reasons[index] = MQTTTranslation.subackReason(for: error)
            }
            if version == .v5, client.wantsProblemInformation { suback.properties = [.reasonString(error.message)] }
            grant(granted.filter { !$0.isInbox }, suback, to: client)
        }
    }

    /// Stores the granted subscriptions where needed, then answers.
    private func grant(_ granted: [Granted], _ suback: MQTTSuback, to client: MQTTClientState) {
        guard client.durable != nil, let link = client.link, !granted.isEmpty else {
            return hold(granted, suback, of: client)
        }
        let list = granted.map { DurableSubscription(filter: $0.text, options: $0.options) }
        let service = environment.messenger.durable
        connection.ask { completion in
            service.subscribe(link.id, list, source: link.source, completion: completion)
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
            hold(granted, suback, of: client)
        case .failure(let error):
            for subscription in granted { giveBack(subscription, of: client) }
            var failed = suback
            let reason: MQTTReasonCode = error.code == .quotaExceeded ? .quotaExceeded : .unspecifiedError
            failed.reasons = suback.reasons.map { $0.isFailure ? $0 : reason }
            write(.suback(failed))
        }
    }

    /// A subscription that was granted is none, or was there already.
    private func giveBack(_ subscription: Granted, of client: MQTTClientState) {
        if subscription.isNew { client.shapes.giveBack(subscription.text) }
    }

    /// Lets other connections of the loop have their turn after an expensive packet.
    private func takeTurns(_ filters: some Collection<String>, of client: MQTTClientState) {
        connection.charge(.filters(filters.count, isKept: client.durable != nil))
        let levels = filters.reduce(0) { $0 + TopicShapes.levels(of: $1) }
        connection.charge(.levels(levels &* topics.loopCount))
        if filters.count > Self.filtersAtOnce { connection.waitForTurn() }
    }

    private static let filtersAtOnce = 64
    /// The most places of wildcards that the filters of one client may have; a publication matches no more of them.
    static let maxShapes = 128
    /// The number of filters of one packet that one turn of the loop handles, in a millisecond or two.
    static let filtersPerTurn = 256

    private struct Refusal: Error {
        let reason: MQTTReasonCode
    }

    private func grant(
        _ wanted: MQTTSubscription,
        identifier: Int?,
        of client: MQTTClientState,
        new: (count: Int, bytes: Int)
    ) -> Result<Granted, Refusal> {
        let shared = MQTTTopic.sharedParts(of: wanted.filter)
        let text = shared.map { String($0.filter) } ?? wanted.filter
        guard let filter = TopicFilter(text) else { return .failure(Refusal(reason: .topicFilterInvalid)) }
        let isNew = client.subscriptions[TopicText(wanted.filter)] == nil
        let settings = gateway.settings
        guard
            !isNew
                || (client.subscriptions.count + new.count < settings.maxSubscriptionsPerSession
                    && client.subscriptionBytes + new.bytes + wanted.filter.utf8.count
                        <= settings.maxSubscriptionBytesPerSession)
        else {
            return .failure(Refusal(reason: .quotaExceeded))
        }
        let generation = environment.access.generation
        let access = client.access(environment.access).access(to: filter)
        guard access != .none else {
            gateway.metrics.refusedSubscriptions.increment()
            return .failure(Refusal(reason: .notAuthorized))
        }
        guard !isNew || client.shapes.take(wanted.filter, limit: Self.maxShapes) else {
            gateway.metrics.refusedSubscriptions.increment()
            return .failure(Refusal(reason: .quotaExceeded))
        }
        var place: MQTTSharedQuota.Place?
        if shared != nil, client.subscriptions[TopicText(wanted.filter)]?.place == nil {
            place = gateway.sharedQuota.join(wanted.filter, of: source(of: client))
            guard place != nil else {
                gateway.metrics.refusedSubscriptions.increment()
                return .failure(Refusal(reason: .quotaExceeded))
            }
        }
        let options = SubscriptionOptions(
            qos: min(MQTTTranslation.qos(wanted.maximumQoS), gateway.maximumQoS),
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
                isNew: isNew,
                generation: generation,
                place: place
            )
        )
    }

    /// Adds the subscriptions, so that the client gets matching messages from now on, and answers.
    private func hold(_ granted: [Granted], _ suback: MQTTSuback, of client: MQTTClientState) {
        reopenRooms(matching: granted.map(\.filter), of: client)
        connection.inSlices(granted.count, of: Self.filtersPerTurn) { [self] slice in
            for granted in granted[slice] {
                // It came twice in a packet, or in two that were under way.
                if client.subscriptions[TopicText(granted.text)] != nil { giveBack(granted, of: client) }
                hold(
                    granted.text,
                    granted.filter,
                    group: granted.group,
                    granted.options,
                    at: granted.place,
                    of: client
                )
            }
            measureMemory()
        } then: { [self] in
            adjustInbox(of: client)
            // The rules changed after the first decision: those that were not held by then missed it.
            if let first = granted.first, first.generation != environment.access.generation { refilter(client) }
            write(.suback(suback))
            for subscription in granted { wantRetained(subscription, of: client) }
            sendRetained(client)
        }
    }

    /// The caller adjusts the inbox then (``adjustInbox(of:)``).
    ///
    /// - Parameter place: of a shared subscription; nil for that of a kept session, which takes one if it can. Without
    ///   one the session gets only what was stored for it.
    func hold(
        _ text: String,
        _ filter: TopicFilter,
        group: String?,
        _ options: SubscriptionOptions,
        at place: MQTTSharedQuota.Place? = nil,
        of client: MQTTClientState
    ) {
        let isForInbox = group == nil && MQTTInbox.isAskedFor(by: filter)
        if isForInbox { client.account?.asking.insert(TopicText(text)) }
        let known = client.subscriptions[TopicText(text)]
        if let known, group == nil || known.place != nil {
            known.live?.options = options
            known.shared?.options = options
            client.subscriptions[TopicText(text)]?.options = options
            return
        }
        var held = MQTTHeldSubscription(options: options)
        if group != nil {
            held.place = place ?? gateway.sharedQuota.join(text, of: source(of: client))
        }
        if let group, held.place != nil {
            held.shared = topics.subscribe(self, sharing: group, to: filter, options: options)
        } else if group == nil {
            held.live = topics.subscribe(self, to: filter, options: options)
        }
        client.subscriptions[TopicText(text)] = held
        if known == nil { client.holds(text) }
        if options.isFiltered { client.hasFilteredSubscriptions = true }
    }

    private func wantRetained(_ granted: Granted, of client: MQTTClientState) {
        guard granted.group == nil else { return }  // [MQTT-4.8.2] shared subscriptions get none
        let request = MQTTRetainedQueue.Request(
            text: granted.text,
            filter: granted.filter,
            options: granted.options
        )
        wantRetained(request, granted.handling, isNew: granted.isNew, of: client)
    }

    // MARK: UNSUBSCRIBE

    func unsubscribeReceived(_ packet: MQTTUnsubscribe) throws(MQTTPacketError) {
        guard let client else { return }
        var reasons: [MQTTReasonCode] = []
        var gone: [TopicText] = []
        var isGone: Set<TopicText> = []
        takeTurns(packet.filters, of: client)
        for filter in packet.filters {
            let text = TopicText(filter)
            guard client.subscriptions[text] != nil, isGone.insert(text).inserted else {
                reasons.append(.noSubscriptionExisted)
                continue
            }
            gone.append(text)
            reasons.append(.success)
        }
        let unsuback = MQTTUnsuback(packetID: packet.packetID, reasons: reasons)
        guard client.durable != nil, let link = client.link, !gone.isEmpty else {
            return drop(gone, unsuback, of: client)
        }
        let service = environment.messenger.durable
        let filters = gone.map(\.rawValue)
        connection.ask { completion in
            service.unsubscribe(link.id, filters, source: link.source, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            unsubscribed(result, gone, unsuback, of: client)
        }
    }

    /// A subscription that the store could not remove stays: it would return with the next connection.
    private func unsubscribed(
        _ result: Result<Void, HermesError>,
        _ gone: [TopicText],
        _ unsuback: MQTTUnsuback,
        of client: MQTTClientState
    ) {
        guard phase == .connected else { return }
        switch result {
        case .success:
            drop(gone, unsuback, of: client)
        case .failure(let error) where version == .v311:
            // 3.1.1 has no refusal: the client has to ask again over another connection.
            parting = (.unspecifiedError, error.message)
            connection.end(.finished)
        case .failure:
            var failed = unsuback
            failed.reasons = unsuback.reasons.map { $0 == .success ? .unspecifiedError : $0 }
            write(.unsuback(failed))
        }
    }

    /// Ends the subscriptions, and answers.
    private func drop(_ gone: [TopicText], _ unsuback: MQTTUnsuback, of client: MQTTClientState) {
        connection.inSlices(gone.count, of: Self.filtersPerTurn) { [self] slice in
            var ended: [MQTTHeldSubscription] = []
            for text in gone[slice] {
                // An operator may have ended it meanwhile.
                guard let held = client.subscriptions.removeValue(forKey: text) else { continue }
                client.letsGo(text.rawValue)
                ended.append(held)
            }
            letGo(ended)
            measureMemory()
        } then: { [self] in
            adjustInbox(of: client)
            write(.unsuback(unsuback))
        }
    }

    /// Ends subscriptions, in time linear in them and in the waiting messages.
    func letGo(_ ended: [MQTTHeldSubscription]) {
        var back = takeBack(of: ended)
        for held in ended { letGo(held, &back) }
    }

    private func letGo(_ held: MQTTHeldSubscription, _ back: inout [ObjectIdentifier: [Publication]]) {
        if let live = held.live { topics.unsubscribe(live) }
        if let shared = held.shared {
            topics.unsubscribe(shared, givingBack: back.removeValue(forKey: ObjectIdentifier(shared)) ?? [])
        }
    }

    /// Ends all subscriptions of an ended connection, in several turns of the loop if they are many. It gets nothing
    /// meanwhile.
    func letGoOfAll(_ ended: [MQTTHeldSubscription]) {
        // Groups have to choose other members at once.
        for held in ended { held.shared?.leave() }
        var back = takeBack(of: ended)
        connection.loop.finishLater(ended.count) { [self] slice in
            for held in ended[slice] { letGo(held, &back) }
        }
    }

    private func takeBack(of ended: [MQTTHeldSubscription]) -> [ObjectIdentifier: [Publication]] {
        let shared = ended.compactMap(\.shared)
        return shared.isEmpty ? [:] : takeBack(Set(shared.map(ObjectIdentifier.init)))
    }

    /// Unacknowledged messages of shared subscriptions: they go to the groups' other members, except those sent with
    /// QoS 2, which nobody else may get [MQTT-4.8.2-5].
    private func takeBack(_ subscriptions: Set<ObjectIdentifier>) -> [ObjectIdentifier: [Publication]] {
        guard let shared = client?.shared else { return [:] }
        var publications: [ObjectIdentifier: [Publication]] = [:]
        var count = 0
        var examined = shared.unacknowledged.count
        if outbound.waiting.holdsAny(of: subscriptions) { examined += outbound.waiting.count }
        connection.chargeInTheEnd(.records(examined))
        let numbers = shared.unacknowledged
            .filter { subscriptions.contains(ObjectIdentifier($0.value.subscription)) }.keys.sorted()
        for number in numbers {
            guard let taken = shared.forget(number) else { continue }
            count += 1
            guard min(taken.publication.qos, taken.subscription.qos) < .exactlyOnce else { continue }
            publications[ObjectIdentifier(taken.subscription), default: []].append(taken.publication)
        }
        for message in outbound.waiting.take(of: subscriptions) {
            guard let subscription = message.shared else { continue }
            publications[ObjectIdentifier(subscription), default: []].append(message.publication)
            count += 1
        }
        shared.load.subtract(count)
        measureMemory()
        return publications
    }
}
