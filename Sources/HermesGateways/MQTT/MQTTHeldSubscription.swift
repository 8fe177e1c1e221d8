// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// One of a client's subscriptions.
struct MQTTHeldSubscription {
    /// The subscription on the loop's topics; nil for a shared subscription.
    var live: TopicSubscription?
    /// The client's part in a shared subscription; nil for other subscriptions, and for a shared subscription without
    /// a membership in the quota.
    var shared: SharedSubscription?
    /// The membership of a shared subscription in the quota; nil for other subscriptions, and if the quota had no room.
    var membership: MQTTSharedQuota.Membership?
    var options: SubscriptionOptions {
        didSet {
            live?.options = options
            shared?.options = options
        }
    }
}
