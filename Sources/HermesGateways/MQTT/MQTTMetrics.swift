// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics

/// What the broker left out or refused, by reason.
struct MQTTMetrics: Sendable {
    private static func dropped(_ reason: String) -> Counter {
        Counter(label: "hermes_mqtt_messages_dropped_total", dimensions: [("reason", reason)])
    }

    let droppedQueueFull = dropped("queue_full")
    let droppedTooLarge = dropped("too_large")
    let droppedExpired = dropped("expired")
    /// Nobody is there to be told: a will that the store did not take.
    let droppedUnstored = dropped("not_stored")
    /// Entries of inboxes that were too large for a client and were told of instead.
    let standIns = Counter(label: "hermes_mqtt_inbox_stand_ins_total")
    let refusedPublishes = Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", "publish")])
    let refusedSubscriptions = Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", "subscribe")])
}
