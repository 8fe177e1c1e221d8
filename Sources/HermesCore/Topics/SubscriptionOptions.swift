// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The quality of service (MQTT 4.3).
package enum QoS: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The options of a subscription.
package struct SubscriptionOptions: Hashable, Sendable {
    /// Subscription identifiers; several only if several subscriptions of one subscriber match a topic.
    package var identifiers: [UInt32]
    /// The highest QoS; publications with a higher one are delivered with this.
    package var qos: QoS
    /// Whether publications of the subscriber's own connection are left out.
    package var noLocal: Bool
    /// Whether the publisher's retain flag is forwarded.
    package var retainAsPublished: Bool
    /// Set for a durable session: the live path delivers only what ends up at QoS 0; the rest comes through the store.
    package var isLiveAtMostOnceOnly: Bool
    /// Whether the subscriber may not read everything that matches, and checks each topic.
    package var isFiltered: Bool
    /// Whether the subscriber looks on from outside: it is no member of a room. Does not change.
    package let isObserver: Bool

    package init(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        identifiers: [UInt32] = [],
        isLiveAtMostOnceOnly: Bool = false,
        isFiltered: Bool = false,
        isObserver: Bool = false
    ) {
        self.identifiers = identifiers
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.isLiveAtMostOnceOnly = isLiveAtMostOnceOnly
        self.isFiltered = isFiltered
        self.isObserver = isObserver
    }

    /// Combines two matching subscriptions of one subscriber: it gets the publication once, with the higher QoS and all
    /// identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-4], and every wish of either is met.
    package mutating func formUnion(_ other: SubscriptionOptions) {
        identifiers += other.identifiers
        qos = max(qos, other.qos)
        noLocal = noLocal && other.noLocal
        retainAsPublished = retainAsPublished || other.retainAsPublished
        isLiveAtMostOnceOnly = isLiveAtMostOnceOnly && other.isLiveAtMostOnceOnly
        isFiltered = isFiltered && other.isFiltered
    }
}
