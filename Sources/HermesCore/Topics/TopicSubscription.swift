// Hermes
// SPDX-License-Identifier: Apache-2.0

/// One subscriber's subscription to one topic or filter. ``TopicShard/unsubscribe(_:)`` ends it. Owner: the shard's
/// loop.
package class TopicSubscription {
    /// The options. A change applies from the next publication on, and no publication is lost.
    ///
    /// The exclusivity is unchecked, because the property is read for each delivery, and all access is on one loop.
    @exclusivity(unchecked)
    package final var options: SubscriptionOptions {
        didSet {
            // Without this check, equal options would cause all routes to be found again.
            guard options != oldValue else { return }
            traits = Traits(options)
            filter?.membersChanged()
            if filter == nil { optionsChanged() }
        }
    }

    /// The options that are needed for each delivery.
    @exclusivity(unchecked)
    private final var traits: Traits

    private struct Traits: OptionSet {
        let rawValue: UInt8
        static let isOwnApart = Self(rawValue: 4)
        static let isLiveAtMostOnceOnly = Self(rawValue: 8)
        static let isPlain = Self(rawValue: 16)

        init(rawValue: UInt8) { self.rawValue = rawValue }

        init(_ options: SubscriptionOptions) {
            var bits = options.qos.rawValue
            if options.noLocal { bits |= Self.isOwnApart.rawValue }
            if options.isLiveAtMostOnceOnly { bits |= Self.isLiveAtMostOnceOnly.rawValue }
            if options.identifiers.isEmpty, !options.retainAsPublished, !options.isFiltered {
                bits |= Self.isPlain.rawValue
            }
            rawValue = bits
        }
    }

    /// The ``SubscriptionOptions/qos`` of the options.
    package final var qos: QoS { QoS(rawValue: traits.rawValue & 3) ?? .atMostOnce }
    /// Whether the subscriber's own publications are delivered through ``own`` instead of with these options.
    package final var isOwnApart: Bool { traits.contains(.isOwnApart) }
    /// The subscription for the subscriber's own publications, if ``isOwnApart`` is true; nil if they are left out.
    package var own: TopicSubscription? { nil }
    /// Whether ``SubscriptionOptions/isLiveAtMostOnceOnly`` is set in the options.
    package final var isLiveAtMostOnceOnly: Bool { traits.contains(.isLiveAtMostOnceOnly) }
    /// Whether all deliveries have the same form. This is the case if there are no identifiers, the retain flag is not
    /// forwarded, and the topics are not filtered.
    package final var isPlain: Bool { traits.contains(.isPlain) }

    // In this order of the properties, the object fits in 56 bytes.
    @exclusivity(unchecked)
    final var isActive = true
    /// The subscription's index in ``FilterMembers/members``.
    @exclusivity(unchecked)
    final var place: UInt32
    /// The members to which the subscription belongs; nil after its end.
    @exclusivity(unchecked)
    final var filter: FilterMembers?

    init(filter: FilterMembers?, place: Int, options: SubscriptionOptions) {
        self.filter = filter
        self.place = UInt32(place)
        self.options = options
        traits = Traits(options)
    }

    /// Whether the subscription is a member's part in a shared subscription.
    package var isShared: Bool { false }

    /// Called when the options have changed, if the subscription is not among a filter's members.
    func optionsChanged() {}

    /// The subscriber's identity. It is equal for all subscriptions of one subscriber.
    var subscriberAddress: UInt { 0 }

    func deliver(_ delivery: Delivery) {}

    func deliver(_ run: DeliveryRun) { deliverOneByOne(run) }

    /// Makes the shard deliver the subscriber's own publications through ``own``.
    final func setOwnApart() { traits.insert(.isOwnApart) }

    /// Returns one subscription that represents several subscriptions of the same subscriber, including this one.
    func merged(_ parts: [TopicSubscription], options: CombinedOptions) -> TopicSubscription { self }

    /// Releases the subscriber.
    func letGo() {}
}

/// A subscription that knows the type of its subscriber, and keeps the subscriber alive until the subscription ends.
final class HeldSubscription<Subscriber: TopicSubscriber>: TopicSubscription {
    private let subscriber: Unmanaged<Subscriber>

    init(subscriber: Subscriber, filter: FilterMembers, options: SubscriptionOptions) {
        self.subscriber = .passRetained(subscriber)
        super.init(filter: filter, place: filter.members.count, options: options)
    }

    override var subscriberAddress: UInt { UInt(bitPattern: subscriber.toOpaque()) }

    override func deliver(_ delivery: Delivery) {
        if isActive { subscriber._withUnsafeGuaranteedRef { $0.deliver(delivery, for: self) } }
    }

    override func deliver(_ run: DeliveryRun) {
        if isActive { subscriber._withUnsafeGuaranteedRef { $0.deliver(run, for: self) } }
    }

    override func merged(_ parts: [TopicSubscription], options: CombinedOptions) -> TopicSubscription {
        let own = options.isOwnApart ? options.own : nil
        let ownSubscription = own.map {
            UnheldSubscription(subscriber: subscriber, parts: parts.filter { !$0.options.noLocal }, options: $0)
        }
        return UnheldSubscription(subscriber: subscriber, parts: parts, options: options.others, own: ownSubscription)
    }

    override func letGo() { subscriber.release() }
}

/// The subscription that replaces several subscriptions of one subscriber in a route.
class MergedSubscription: TopicSubscription {
    private final let parts: [TopicSubscription]
    private final let ownPublications: TopicSubscription?

    /// - Parameter own: the subscription for the subscriber's own publications, if its options differ.
    init(parts: [TopicSubscription], options: SubscriptionOptions, own: TopicSubscription?) {
        self.parts = parts
        ownPublications = own
        super.init(filter: nil, place: 0, options: options)
        if own != nil { setOwnApart() }
    }

    override var own: TopicSubscription? { ownPublications }

    final var isAnyPartActive: Bool {
        // A `for` loop would allocate memory in a build without optimization.
        var place = 0
        while place < parts.count {
            if parts[place].isActive { return true }
            place += 1
        }
        return false
    }
}

/// A merged subscription that does not keep the subscriber alive. Its parts keep the subscriber alive while at least
/// one of them is active.
private final class UnheldSubscription<Subscriber: TopicSubscriber>: MergedSubscription {
    private let subscriber: Unmanaged<Subscriber>

    init(
        subscriber: Unmanaged<Subscriber>,
        parts: [TopicSubscription],
        options: SubscriptionOptions,
        own: TopicSubscription? = nil
    ) {
        self.subscriber = subscriber
        super.init(parts: parts, options: options, own: own)
    }

    override func deliver(_ delivery: Delivery) {
        if isAnyPartActive { subscriber._withUnsafeGuaranteedRef { $0.deliver(delivery, for: self) } }
    }

    override func deliver(_ run: DeliveryRun) {
        if isAnyPartActive { subscriber._withUnsafeGuaranteedRef { $0.deliver(run, for: self) } }
    }
}
