// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The quality of service (MQTT 4.3).
public enum QoS: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    /// Compares the guarantees.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The options of a subscription.
package struct SubscriptionOptions: Hashable, Sendable {
    /// The subscription identifiers. One subscription has at most one identifier. Several identifiers come from the
    /// combination of several matching subscriptions of one subscriber.
    package var identifiers: [UInt32]
    /// The highest QoS; publications with a higher QoS are delivered with this QoS.
    package var qos: QoS
    /// Whether the client's own publications are left out.
    package var noLocal: Bool
    /// Whether the publisher's retain flag is forwarded.
    package var retainAsPublished: Bool
    /// Whether the live path delivers only publications that arrive with QoS 0. This is the case for a durable session,
    /// which gets other publications through the store.
    package var isLiveAtMostOnceOnly: Bool
    /// Whether the subscriber may read only some of the topics that match. If so, it checks the topic of each
    /// publication.
    package var isFiltered: Bool
    /// Whether the subscriber is only an observer. An observer does not count as a member of a room. The value does not
    /// change.
    package let isObserver: Bool
    /// Whether the subscription gets only publications that are published on this node. The other nodes are not told
    /// about such a subscription. The value does not change.
    package let isOfThisNode: Bool

    package init(
        qos: QoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        identifiers: [UInt32] = [],
        isLiveAtMostOnceOnly: Bool = false,
        isFiltered: Bool = false,
        isObserver: Bool = false,
        isOfThisNode: Bool = false
    ) {
        self.identifiers = identifiers
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.isLiveAtMostOnceOnly = isLiveAtMostOnceOnly
        self.isFiltered = isFiltered
        self.isObserver = isObserver
        self.isOfThisNode = isOfThisNode
    }

    /// Combines two matching subscriptions of one subscriber. The subscriber gets the publication once, with the higher
    /// QoS and all identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-4]. For each other option, the less restrictive value
    /// applies.
    fileprivate mutating func formUnion(_ other: SubscriptionOptions) {
        identifiers += other.identifiers
        qos = max(qos, other.qos)
        noLocal = noLocal && other.noLocal
        retainAsPublished = retainAsPublished || other.retainAsPublished
        isLiveAtMostOnceOnly = isLiveAtMostOnceOnly && other.isLiveAtMostOnceOnly
        isFiltered = isFiltered && other.isFiltered
    }
}

/// The options of all subscriptions of one subscriber that match a topic.
struct CombinedOptions {
    /// The options for publications of other clients.
    private(set) var others: SubscriptionOptions
    /// Whether one of the subscriptions has the option "no local".
    private(set) var isOwnApart: Bool
    /// The combined options of the subscriptions without the option "no local", if ``isOwnApart`` is true; nil if there
    /// are no such subscriptions.
    private var apart: SubscriptionOptions?

    init(_ options: SubscriptionOptions) {
        others = options
        isOwnApart = options.noLocal
    }

    /// The options for the subscriber's own publications; nil if these are left out [MQTT-3.8.3-3].
    var own: SubscriptionOptions? { isOwnApart ? apart : others }

    /// The memory of the subscription identifiers, in bytes.
    var identifierBytes: Int { Self.bytes(others.identifiers) + Self.bytes(apart?.identifiers ?? []) }

    /// Adds another subscription of the same subscriber.
    mutating func formUnion(_ other: SubscriptionOptions) {
        if isOwnApart || other.noLocal {
            if !isOwnApart { apart = others }
            isOwnApart = true
            if !other.noLocal {
                if apart == nil { apart = other } else { apart?.formUnion(other) }
            }
        }
        others.formUnion(other)
    }

    private static func bytes(_ identifiers: [UInt32]) -> Int {
        identifiers.isEmpty ? 0 : 32 + MemoryLayout<UInt32>.size * identifiers.capacity
    }
}
