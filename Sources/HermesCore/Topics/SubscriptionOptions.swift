// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How surely a publication is handed over (MQTT 4.3).
package enum QoS: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// What a subscriber asked for beside the topics.
package struct SubscriptionOptions: Hashable, Sendable {
    /// Subscription identifiers; more than one only where several subscriptions of one subscriber match a topic.
    package var identifiers: [UInt32]
    /// The most that is wanted; what was published with more is handed over with this.
    package var qos: QoS
    /// What the subscriber's own connection publishes is not wanted.
    package var noLocal: Bool
    /// The publisher's retain flag is passed on as it is.
    package var retainAsPublished: Bool
    /// Set for a durable session: the live path hands over only what is delivered at QoS 0 in the end; the rest comes
    /// through the store.
    package var isLiveAtMostOnceOnly: Bool
    /// The subscriber may not have all that matches: it looks at each topic.
    package var isFiltered: Bool

    package init(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        identifiers: [UInt32] = [],
        isLiveAtMostOnceOnly: Bool = false,
        isFiltered: Bool = false
    ) {
        self.identifiers = identifiers
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.isLiveAtMostOnceOnly = isLiveAtMostOnceOnly
        self.isFiltered = isFiltered
    }

    /// What holds where two subscriptions of one subscriber match: it gets the publication once, with the higher QoS and
    /// all identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-4]; what one of them wants is wanted.
    package mutating func formUnion(_ other: SubscriptionOptions) {
        identifiers += other.identifiers
        qos = max(qos, other.qos)
        noLocal = noLocal && other.noLocal
        retainAsPublished = retainAsPublished || other.retainAsPublished
        isLiveAtMostOnceOnly = isLiveAtMostOnceOnly && other.isLiveAtMostOnceOnly
        isFiltered = isFiltered && other.isFiltered
    }
}
