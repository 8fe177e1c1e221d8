// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics

/// The numbers of messages that the broker dropped or refused, by reason.
struct MQTTMetrics: Sendable {
    private static func dropped(_ reason: String) -> Counter {
        Counter(label: "hermes_mqtt_messages_dropped_total", dimensions: [("reason", reason)])
    }

    let droppedQueueFull = dropped("queue_full")
    let droppedTooLarge = dropped("too_large")
    let droppedExpired = dropped("expired")
    /// A will that the store refused; there is no client to tell.
    let droppedUnstored = dropped("not_stored")
    /// Inbox entries that were too large for a client and were replaced.
    let standIns = Counter(label: "hermes_mqtt_inbox_stand_ins_total")
    let refusedPublishes = Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", "publish")])
    let refusedSubscriptions = Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", "subscribe")])
}
