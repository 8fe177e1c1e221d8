// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics

/// The numbers of messages that the broker dropped or refused, by reason.
struct MQTTMetrics: Sendable {
    private static func dropped(_ reason: String) -> Counter {
        Counter(label: "hermes_mqtt_messages_dropped_total", dimensions: [("reason", reason)])
    }

    private static func refused(_ packet: String, _ reason: String) -> Counter {
        Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", packet), ("reason", reason)])
    }

    let droppedQueueFull = dropped("queue_full")
    let droppedTooLarge = dropped("too_large")
    let droppedExpired = dropped("expired")
    /// Joins and leaves of rooms, including those in wills, that exceed the budget for joins and leaves
    /// (``ArrivalBudget``).
    let droppedCrowded = dropped("too_many_joins")
    /// Wills that the store refused. Their clients are gone, so no client can be notified.
    let droppedUnstored = dropped("not_stored")
    /// Inbox entries that were too large for a client and were replaced.
    let standIns = Counter(label: "hermes_mqtt_inbox_stand_ins_total")
    /// Publications that the topic rules refused.
    let refusedPublishes = refused("publish", "rules")
    /// Publications to rooms, and to the topics of other protocols' clients (``ApplicationTopics``), whose payload
    /// these clients cannot get.
    let refusedPayloads = GatewayMetrics.refusedPayloads()
    /// Subscriptions that the topic rules refused.
    let refusedSubscriptions = refused("subscribe", "rules")
    /// Subscriptions that were refused because the session, or the share of its owner, has no room for them.
    let subscriptionsWithoutRoom = refused("subscribe", "quota")
}
