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
    /// Joins and leaves of rooms, wills too, beyond what is told of all.
    let droppedCrowded = dropped("too_many_joins")
    /// A will that the store refused; there is no client to tell.
    let droppedUnstored = dropped("not_stored")
    /// Inbox entries that were too large for a client and were replaced.
    let standIns = Counter(label: "hermes_mqtt_inbox_stand_ins_total")
    /// By the rules for topics.
    let refusedPublishes = refused("publish", "rules")
    let refusedSubscriptions = refused("subscribe", "rules")
    /// Without room in the session, or in their owner's share.
    let subscriptionsWithoutRoom = refused("subscribe", "quota")
}
