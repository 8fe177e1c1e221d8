// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Metrics
import NIOCore

/// Handling of SUBSCRIBE (3.8, 3.9).
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
        /// The membership that a new shared subscription gets from the quota; nil for other subscriptions.
        let membership: MQTTSharedQuota.Membership?

        /// Whether the filter asks for the account's inbox.
        var isInbox: Bool { MQTTConnection.isInbox(filter) }
    }

    /// A SUBSCRIBE packet and the decisions about its filters so far.
    private final class Request {
        var filters: MQTTFilterList
        let identifier: Int?
        var reasons: [MQTTReasonCode] = []
        private(set) var granted: [Granted] = []
        /// The number of new subscriptions in ``granted``, and the bytes of their texts.
        private(set) var new = (count: 0, bytes: 0)
        /// The texts of the new subscriptions, if the packet has several filters.
        private var newTexts: Set<TopicText> = []

        init(_ filters: MQTTFilterList) {
            self.filters = filters
            identifier = filters.properties.subscriptionIdentifier
        }

        /// Whether a filter is among the new subscriptions. A repetition of the filter does not count as a further
        /// subscription.
        func hasNew(_ text: TopicText) -> Bool { newTexts.contains(text) }

        func grant(_ subscription: Granted) {
            granted.append(subscription)
            guard subscription.isNew else { return }
            let text = subscription.filter.text
            new = (new.count + 1, new.bytes + text.rawValue.utf8.count)
            if filters.count > 1 { newTexts.insert(text) }
        }

        var suback: MQTTSuback { MQTTSuback(packetID: filters.packetID, reasons: reasons) }
    }

    func subscribeReceived(_ filters: MQTTFilterList) {
        guard let client else { return }
        let request = Request(filters)
        decideInTurns(filters.count, of: client) { [self] () throws(MQTTPacketError) in
            decideSubscription(try request.filters.nextSubscription(), request, of: client)
        } then: { [self] in
            decided(request, of: client)
        }
    }

    /// Decides about the filters of a packet, a few in each turn of the event loop.
    ///
    /// - Parameter decide: decides about the next filter, and returns the number of its levels, which are charged; 0
    ///   for a filter without wildcards.
    func decideInTurns(
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
        // If a packet has more filters than a session is allowed to have, it repeats some filters. The repetitions
        // occupy memory until the packet is answered, so the remaining filters are refused.
        guard request.granted.count < max(gateway.settings.maxSubscriptionsPerSession, Self.mostRepeated) else {
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
            request.grant(subscription)
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
        guard client.durable != nil, let link = client.link, let id = link.id, !granted.isEmpty else {
            return addSubscriptions(granted, suback, of: client)
        }
        let list = granted.map { DurableSubscription(filter: $0.filter.text.rawValue, options: $0.options) }
        let service = environment.messenger.durable
        connection.ask { completion in
            service.subscribe(id, list, source: link.source) { completion(.success($0)) }
        } then: { [self] (result: Result<FilterChange, HermesError>) in
            subscribed(FilterChange(result), granted, suback, of: client)
        }
    }

    /// Handles the store's answer. If there are many filters, they are stored in parts. If a part fails, the filters of
    /// the earlier parts are subscribed, and all other filters are refused.
    private func subscribed(
        _ change: FilterChange,
        _ granted: [Granted],
        _ suback: MQTTSuback,
        of client: MQTTClientState
    ) {
        var (granted, suback) = (granted, suback)
        if !change.refused.isEmpty {
            for subscription in granted where change.refused.contains(subscription.filter.text) {
                giveBack(subscription, of: client)
                suback.reasons[subscription.index] = .quotaExceeded
            }
            granted.removeAll { change.refused.contains($0.filter.text) }
        }
        guard let error = change.error else { return addSubscriptions(granted, suback, of: client) }
        for subscription in granted.dropFirst(change.done) { giveBack(subscription, of: client) }
        suback.reasons = Self.reasons(
            suback.reasons,
            ofFirst: change.done,
            else: error.code == .quotaExceeded ? .quotaExceeded : .unspecifiedError
        )
        guard change.done > 0 else { return write(.suback(suback)) }
        addSubscriptions(Array(granted.prefix(change.done)), suback, of: client)
    }

    /// Returns a packet's reason codes for the case that the store changed only the first `count` of the granted
    /// filters. The other granted filters get `failure`.
    static func reasons(
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

    /// The number of filters that one packet may have, even if a session is limited to fewer subscriptions.
    static let mostRepeated = 1_024

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
        let isNew = known == nil && !request.hasNew(filter.text)
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
        var membership: MQTTSharedQuota.Membership?
        if filter.group != nil, known?.membership == nil, !request.hasNew(filter.text) {
            membership = gateway.sharedQuota.join(wanted.filter, of: source(of: client))
            guard membership != nil else {
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
                membership: membership
            )
        )
    }

    /// Whether a new subscription fits into the session, in addition to the new subscriptions that were granted for
    /// the same packet.
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
                let isKnown = hold(granted.filter, granted.options, membership: granted.membership, of: client)
                // The filter arrived twice: in one packet, or in two packets that were being handled at the same
                // time.
                if isKnown { giveBack(granted, of: client) }
            }
            measureMemory()
        } then: { [self] in
            adjustInbox(of: client)
            // If the rules have changed since the first decision, the change was not applied to the subscriptions
            // that were not yet added.
            if let first = granted.first, first.generation != environment.access.generation { refilter(client) }
            write(.suback(suback))
            connection.inSlices(granted.count, of: Self.filtersPerTurn) { [self] slice in
                for subscription in granted[slice] { wantRetained(subscription, of: client) }
            } then: { [self] in
                sendRetained(client)
            }
        }
    }

    /// Adds a subscription, or changes the options of a known subscription. The caller must adjust the inbox
    /// afterwards (``adjustInbox(of:)``).
    ///
    /// - Parameter membership: the membership of a shared subscription in the quota. It is nil for a shared
    ///   subscription that is restored with a kept session. A restored subscription gets a membership if there is
    ///   room. Without a membership, the session gets only messages that are stored for it.
    /// - Returns: whether the client already had a subscription with this text. After the end of the connection,
    ///   nothing is added, and the result is false.
    @discardableResult
    func hold(
        _ filter: MQTTFilter,
        _ options: SubscriptionOptions,
        membership: MQTTSharedQuota.Membership? = nil,
        of client: MQTTClientState
    ) -> Bool {
        // After the end, nothing would remove the subscription again.
        guard self.client === client else { return false }
        if Self.isInbox(filter) { client.account?.asking.insert(filter.text) }
        let known = client.subscriptions[filter.text]
        if let known, filter.group == nil || known.membership != nil {
            client.subscriptions.change(filter.text, options)
            return true
        }
        var held = MQTTHeldSubscription(options: options)
        if let group = filter.group {
            held.membership = membership ?? gateway.sharedQuota.join(filter.text.rawValue, of: source(of: client))
            if held.membership != nil {
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
}
