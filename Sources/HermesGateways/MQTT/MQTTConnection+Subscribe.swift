// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Metrics
import NIOCore

/// Handling of SUBSCRIBE and UNSUBSCRIBE (3.8 to 3.11).
extension MQTTConnection {
    /// A granted filter.
    private struct Granted {
        let filter: MQTTFilter
        /// The index of the filter's reason code in the SUBACK.
        let index: Int
        var options: SubscriptionOptions
        let handling: MQTTSubscription.RetainHandling
        let isNew: Bool
        /// The generation of the topic rules by which the filter was granted.
        let generation: UInt64
        /// The membership that a new shared subscription takes from the quota; nil for other subscriptions.
        let place: MQTTSharedQuota.Place?

        /// Whether the filter asks for the account's inbox.
        var isInbox: Bool { MQTTConnection.isInbox(filter) }
    }

    /// A SUBSCRIBE packet and the decisions about its filters so far.
    private final class Request {
        var filters: MQTTFilterList
        let identifier: Int?
        var reasons: [MQTTReasonCode] = []
        var granted: [Granted] = []
        /// The number of new subscriptions in ``granted``, and the bytes of their texts.
        var new = (count: 0, bytes: 0)

        init(_ filters: MQTTFilterList) {
            self.filters = filters
            identifier = filters.properties.subscriptionIdentifier
        }

        var suback: MQTTSuback { MQTTSuback(packetID: filters.packetID, reasons: reasons) }
    }

    func subscribeReceived(_ filters: MQTTFilterList) {
        guard let client else { return }
        let request = Request(filters)
        inTurns(filters.count, of: client) { [self] () throws(MQTTPacketError) in
            decideSubscription(try request.filters.nextSubscription(), request, of: client)
        } then: { [self] in
            decided(request, of: client)
        }
    }

    /// Decides about the filters of a packet, a few in each turn of the event loop.
    ///
    /// - Parameter decide: decides about the next filter, and returns the number of its levels, which are charged; 0
    ///   for a filter without wildcards.
    private func inTurns(
        _ count: Int,
        of client: MQTTClientState,
        _ decide: @escaping () throws(MQTTPacketError) -> Int,
        then finish: @escaping () -> Void
    ) {
        takeTurns(count, of: client)
        connection.inSlices(count, of: Self.filtersPerTurn) { [self] slice in
            attempt { () throws(MQTTPacketError) in
                var levels = 0
                for _ in slice { levels += try decide() }
                connection.charge(.levels(levels &* topics.loopCount))
            }
        } then: {
            finish()
        }
    }

    /// Decides about one filter of a SUBSCRIBE.
    ///
    /// - Returns: the number of the filter's levels; 0 for a filter without wildcards.
    private func decideSubscription(
        _ wanted: MQTTSubscription,
        _ request: Request,
        of client: MQTTClientState
    ) -> Int {
        // A packet that has more filters than a session may have repeats filters, so the rest is refused.
        guard request.granted.count < gateway.settings.maxSubscriptionsPerSession else {
            gateway.metrics.subscriptionsWithoutRoom.increment()
            request.reasons.append(.quotaExceeded)
            return 0
        }
        guard let filter = MQTTFilter(wanted.filter) else {
            request.reasons.append(.topicFilterInvalid)
            return 0
        }
        switch grant(wanted, filter, request, of: client) {
        case .success(let subscription):
            if subscription.isNew {
                request.new = (request.new.count + 1, request.new.bytes + wanted.filter.utf8.count)
            }
            request.granted.append(subscription)
            request.reasons.append(MQTTTranslation.granted(subscription.options.qos))
        case .failure(let refusal):
            request.reasons.append(refusal.reason)
        }
        return filter.shape.levels
    }

    private func decided(_ request: Request, of client: MQTTClientState) {
        let granted = request.granted
        let asksForInbox = granted.contains(where: \.isInbox)
        if asksForInbox { connection.asksToAttach() }
        guard asksForInbox, client.account?.login == nil else {
            return storeSubscriptions(granted, request.suback, of: client)
        }
        guard let account = client.account else {
            return refuseInbox(Self.problem(withInboxOf: client), granted, request.suback, of: client)
        }
        openDevice(of: account) { [self] error in
            guard let error else { return storeSubscriptions(granted, request.suback, of: client) }
            refuseInbox(error, granted, request.suback, of: client)
        }
    }

    /// Returns the reason why a client without a device cannot have an inbox.
    private static func problem(withInboxOf client: MQTTClientState) -> HermesError {
        guard client.identity.account != nil else {
            return HermesError(.notAuthenticated, "an inbox needs a login with the name of an account")
        }
        return HermesError(.forbidden, "an inbox needs a client identifier of 1 to 64 printable ASCII characters")
    }

    /// Refuses the filters for the inbox, and continues with the other granted filters.
    private func refuseInbox(
        _ error: HermesError,
        _ granted: [Granted],
        _ suback: MQTTSuback,
        of client: MQTTClientState
    ) {
        var suback = suback
        for subscription in granted where subscription.isInbox {
            giveBack(subscription, of: client)
            suback.reasons[subscription.index] = MQTTTranslation.subackReason(for: error)
        }
        if version == .v5, client.wantsProblemInformation {
            var explained = suback
            explained.properties = [.reasonString(error.message)]
            // The reason string is left out if the packet would be too large for the client [MQTT-3.9.2-1].
            if bytes(of: .suback(explained)) != nil { suback = explained }
        }
        storeSubscriptions(granted.filter { !$0.isInbox }, suback, of: client)
    }

    /// Stores the granted subscriptions if the session is durable, then adds them and answers.
    private func storeSubscriptions(_ granted: [Granted], _ suback: MQTTSuback, of client: MQTTClientState) {
        guard client.durable != nil, let link = client.link, !granted.isEmpty else {
            return addSubscriptions(granted, suback, of: client)
        }
        let list = granted.map { DurableSubscription(filter: $0.filter.text.rawValue, options: $0.options) }
        let service = environment.messenger.durable
        connection.ask { completion in
            service.subscribe(link.id, list, source: link.source) { completion(.success($0)) }
        } then: { [self] (result: Result<FilterChange, HermesError>) in
            subscribed(FilterChange(result), granted, suback, of: client)
        }
    }

    /// Handles the store's answer. Many filters are stored in parts: if a part fails, the filters before it are
    /// subscribed, and the others are refused.
    private func subscribed(
        _ change: FilterChange,
        _ granted: [Granted],
        _ suback: MQTTSuback,
        of client: MQTTClientState
    ) {
        guard let error = change.error else { return addSubscriptions(granted, suback, of: client) }
        for subscription in granted.dropFirst(change.done) { giveBack(subscription, of: client) }
        var suback = suback
        suback.reasons = Self.reasons(
            suback.reasons,
            ofFirst: change.done,
            else: error.code == .quotaExceeded ? .quotaExceeded : .unspecifiedError
        )
        guard change.done > 0 else { return write(.suback(suback)) }
        addSubscriptions(Array(granted.prefix(change.done)), suback, of: client)
    }

    /// Returns a packet's reason codes if only the first `count` of the granted filters were stored. The other granted
    /// filters get `failure`.
    private static func reasons(
        _ reasons: [MQTTReasonCode],
        ofFirst count: Int,
        else failure: MQTTReasonCode,
        isGranted: (MQTTReasonCode) -> Bool = { !$0.isFailure }
    ) -> [MQTTReasonCode] {
        var left = count
        return reasons.map { reason in
            guard isGranted(reason) else { return reason }
            left -= 1
            return left >= 0 ? reason : failure
        }
    }

    /// Stops counting the shape (``TopicShape``) of a granted new subscription that is not added after all, or whose
    /// filter was already added.
    private func giveBack(_ subscription: Granted, of client: MQTTClientState) {
        if subscription.isNew { client.subscriptions.giveBack(subscription.filter.shape) }
    }

    /// Charges the filters of a packet. After a packet with many filters, other connections of the loop have their turn
    /// before this connection is read again.
    ///
    /// - Parameter count: the number of the packet's filters.
    private func takeTurns(_ count: Int, of client: MQTTClientState) {
        connection.charge(.filters(count, isKept: client.durable != nil))
        if count > Self.filtersPerTurn { connection.waitForTurn() }
    }

    /// The number of filters of one packet that are handled in one turn of the loop. They take about half a millisecond
    /// (``TurnQueue/shortTime``).
    static let filtersPerTurn = 64

    func lease(of client: MQTTClientState) -> ShapeLease {
        ShapeLease(environment.messenger.durable.shapes, of: source(of: client))
    }

    private struct Refusal: Error {
        let reason: MQTTReasonCode
    }

    /// Decides whether the client gets a subscription. If the subscription is new and granted, its shape counts from
    /// now on.
    private func grant(
        _ wanted: MQTTSubscription,
        _ filter: MQTTFilter,
        _ request: Request,
        of client: MQTTClientState
    ) -> Result<Granted, Refusal> {
        let known = client.subscriptions[filter.text]
        let isNew = known == nil
        guard !isNew || hasRoom(for: filter, request, of: client) else { return noRoom() }
        let generation = environment.access.generation
        let access = client.access(environment.access).access(to: filter.filter)
        guard access != .none else {
            gateway.metrics.refusedSubscriptions.increment()
            return .failure(Refusal(reason: .notAuthorized))
        }
        guard !isNew || client.subscriptions.reserve(filter.shape, newLease: { lease(of: client) }) else {
            return noRoom()
        }
        var place: MQTTSharedQuota.Place?
        if filter.group != nil, known?.place == nil {
            place = gateway.sharedQuota.join(wanted.filter, of: source(of: client))
            guard place != nil else {
                if isNew { client.subscriptions.giveBack(filter.shape) }
                return noRoom()
            }
        }
        return .success(
            Granted(
                filter: filter,
                index: request.reasons.count,
                options: options(wanted, request, isFiltered: access == .some, of: client),
                handling: wanted.retainHandling,
                isNew: isNew,
                generation: generation,
                place: place
            )
        )
    }

    /// Whether a new subscription fits into the session, in addition to those that were granted for the same packet.
    private func hasRoom(for filter: MQTTFilter, _ request: Request, of client: MQTTClientState) -> Bool {
        client.subscriptions.hasRoom(
            for: filter,
            besides: request.new,
            maxCount: gateway.settings.maxSubscriptionsPerSession,
            maxBytes: gateway.settings.maxSubscriptionBytesPerSession
        )
    }

    /// Counts and returns the refusal of a filter for which there is no room.
    private func noRoom() -> Result<Granted, Refusal> {
        gateway.metrics.subscriptionsWithoutRoom.increment()
        return .failure(Refusal(reason: .quotaExceeded))
    }

    private func options(
        _ wanted: MQTTSubscription,
        _ request: Request,
        isFiltered: Bool,
        of client: MQTTClientState
    ) -> SubscriptionOptions {
        SubscriptionOptions(
            qos: min(MQTTTranslation.qos(wanted.maximumQoS), gateway.maximumQoS),
            noLocal: wanted.noLocal,
            retainAsPublished: wanted.retainAsPublished,
            identifiers: request.identifier.map { [UInt32(clamping: $0)] } ?? [],
            isLiveAtMostOnceOnly: client.durable != nil,
            isFiltered: isFiltered
        )
    }

    /// Adds the subscriptions, and then sends SUBACK. The client gets matching messages from now on.
    private func addSubscriptions(_ granted: [Granted], _ suback: MQTTSuback, of client: MQTTClientState) {
        connection.inSlices(granted.count, of: Self.filtersPerTurn) { [self] slice in
            reopenRooms(matching: granted[slice].map(\.filter.filter), of: client)
            for granted in granted[slice] {
                let isKnown = hold(granted.filter, granted.options, at: granted.place, of: client)
                // The filter arrived twice: in one packet, or in two packets that were under way together.
                if isKnown { giveBack(granted, of: client) }
            }
            measureMemory()
        } then: { [self] in
            adjustInbox(of: client)
            // If the rules have changed since the first decision, the subscriptions that were not yet added missed the
            // change.
            if let first = granted.first, first.generation != environment.access.generation { refilter(client) }
            write(.suback(suback))
            connection.inSlices(granted.count, of: Self.filtersPerTurn) { [self] slice in
                for subscription in granted[slice] { wantRetained(subscription, of: client) }
            } then: { [self] in
                sendRetained(client)
            }
        }
    }

    /// Adds a subscription, or changes the options of a known one. The caller must adjust the inbox afterwards
    /// (``adjustInbox(of:)``).
    ///
    /// - Parameter place: the membership of a shared subscription in the quota. It is nil for a shared subscription
    ///   that is restored with a kept session. A restored subscription takes a membership if there is room. Without a
    ///   membership, the session gets only messages that are stored for it.
    /// - Returns: whether the client already had a subscription with this text. After the end of the connection,
    ///   nothing is added, and the result is false.
    @discardableResult
    func hold(
        _ filter: MQTTFilter,
        _ options: SubscriptionOptions,
        at place: MQTTSharedQuota.Place? = nil,
        of client: MQTTClientState
    ) -> Bool {
        // After the end, nothing would remove the subscription again.
        guard self.client === client else { return false }
        if Self.isInbox(filter) { client.account?.asking.insert(filter.text) }
        let known = client.subscriptions[filter.text]
        if let known, filter.group == nil || known.place != nil {
            client.subscriptions.change(filter.text, options)
            return true
        }
        var held = MQTTHeldSubscription(options: options)
        if let group = filter.group {
            held.place = place ?? gateway.sharedQuota.join(filter.text.rawValue, of: source(of: client))
            if held.place != nil {
                held.shared = topics.subscribe(self, sharing: group, to: filter.filter, options: options)
            }
        } else {
            held.live = topics.subscribe(self, to: filter.filter, options: options)
        }
        client.subscriptions.hold(filter, held)
        return known != nil
    }

    /// Whether a filter asks for the account's inbox.
    private static func isInbox(_ filter: MQTTFilter) -> Bool {
        filter.group == nil && MQTTInbox.isAskedFor(by: filter.filter)
    }

    private func wantRetained(_ granted: Granted, of client: MQTTClientState) {
        guard granted.filter.group == nil else { return }  // [MQTT-4.8.2] no retained messages for shared subscriptions
        let request = MQTTRetainedQueue.Request(
            text: granted.filter.text.rawValue,
            filter: granted.filter.filter
        )
        wantRetained(request, granted.handling, isNew: granted.isNew, of: client)
    }

    // MARK: UNSUBSCRIBE

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
        inTurns(filters.count, of: client) { [self] () throws(MQTTPacketError) in
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
        guard client.durable != nil, let link = client.link, !gone.isEmpty else {
            return drop(gone, unsuback, of: client)
        }
        let service = environment.messenger.durable
        let filters = gone.map(\.rawValue)
        connection.ask { completion in
            service.unsubscribe(link.id, filters, source: link.source) { completion(.success($0)) }
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
            // 3.1.1 has no refusal: the client has to repeat the request over another connection.
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
            // Until a filter is removed, searches still follow it, so the lease keeps its shape counted.
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
        // Charged last, because the charge may end the connection.
        connection.chargeInTheEnd(.records(examined))
        return publications
    }
}
