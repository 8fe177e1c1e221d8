// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import Synchronization

/// The metrics of one listener, created once.
package final class GatewayMetrics: Sendable {
    let connectionsOpened: Counter
    let connectionsClosed: Counter
    let framesIn: Counter
    let framesOut: Counter
    let bytesIn: Counter
    let bytesOut: Counter
    let messagesIn: Counter
    let messagesOut: Counter
    let deliveries: Counter
    let logins: LoginMetrics
    private let totals = Totals()
    private let droppedText: Counter
    private let droppedPresence: Counter
    private let droppedGifts: Counter
    private let ended: [CloseReason.Kind: Counter]
    private let refused: [ConnectionCounter.Refusal: Counter]
    private let throttledConnections: Counter

    package init(gateway: String) {
        let dimensions = [("gateway", gateway)]
        logins = LoginMetrics(gateway: gateway)
        connectionsOpened = Counter(label: "hermes_connections_opened_total", dimensions: dimensions)
        connectionsClosed = Counter(label: "hermes_connections_closed_total", dimensions: dimensions)
        framesIn = Counter(label: "hermes_frames_received_total", dimensions: dimensions)
        framesOut = Counter(label: "hermes_frames_sent_total", dimensions: dimensions)
        bytesIn = Counter(label: "hermes_bytes_received_total", dimensions: dimensions)
        bytesOut = Counter(label: "hermes_bytes_sent_total", dimensions: dimensions)
        messagesIn = Counter(label: "hermes_messages_received_total", dimensions: dimensions)
        messagesOut = Counter(label: "hermes_messages_sent_total", dimensions: dimensions)
        deliveries = Counter(label: "hermes_deliveries_total", dimensions: dimensions)
        func dropped(_ name: String) -> Counter {
            Counter(label: "hermes_frames_dropped_total", dimensions: dimensions + [("class", name)])
        }
        throttledConnections = Counter(label: "hermes_connections_throttled_total", dimensions: dimensions)
        droppedText = dropped("text")
        droppedPresence = dropped("presence")
        droppedGifts = dropped("gift")
        func byReason(_ label: String, _ reason: String) -> Counter {
            Counter(label: label, dimensions: dimensions + [("reason", reason)])
        }
        ended = Dictionary(
            uniqueKeysWithValues: CloseReason.Kind.allCases.map {
                ($0, byReason("hermes_connections_ended_total", $0.rawValue))
            }
        )
        refused = Dictionary(
            uniqueKeysWithValues: ConnectionCounter.Refusal.allCases.map {
                ($0, byReason("hermes_connections_refused_total", $0.rawValue))
            }
        )
    }

    /// The counts, at most half a second old, for code that cannot read the counters.
    private final class Totals: Sendable {
        let opened = Atomic(0)
        let closed = Atomic(0)
        let framesIn = Atomic(0)
        let framesOut = Atomic(0)
        let bytesIn = Atomic(0)
        let bytesOut = Atomic(0)
    }

    var openedTotal: Int { totals.opened.load(ordering: .relaxed) }
    var openTotal: Int { max(0, openedTotal - totals.closed.load(ordering: .relaxed)) }
    var framesInTotal: Int { totals.framesIn.load(ordering: .relaxed) }
    var framesOutTotal: Int { totals.framesOut.load(ordering: .relaxed) }
    var bytesInTotal: Int { totals.bytesIn.load(ordering: .relaxed) }
    var bytesOutTotal: Int { totals.bytesOut.load(ordering: .relaxed) }

    func add(_ tally: ConnectionTally) {
        totals.opened.add(tally.opened, ordering: .relaxed)
        totals.closed.add(tally.closed, ordering: .relaxed)
        totals.framesIn.add(tally.framesIn, ordering: .relaxed)
        totals.framesOut.add(tally.framesOut, ordering: .relaxed)
        totals.bytesIn.add(tally.bytesIn, ordering: .relaxed)
        totals.bytesOut.add(tally.bytesOut, ordering: .relaxed)
    }

    func dropped(_ dropped: OutboundQueue.Dropped) {
        if dropped.text > 0 { droppedText.increment(by: dropped.text) }
        if dropped.presence > 0 { droppedPresence.increment(by: dropped.presence) }
        if dropped.gift > 0 { droppedGifts.increment(by: dropped.gift) }
    }

    func refused(_ kind: Publication.DropClass, _ frameCount: Int) {
        switch kind {
        case .text: droppedText.increment(by: frameCount)
        case .presence: droppedPresence.increment(by: frameCount)
        case .gift: droppedGifts.increment(by: frameCount)
        case .control: break
        }
    }

    /// Counts a connection that the server ended.
    func ended(_ reason: CloseReason) { ended[reason.kind]?.increment() }

    /// Counts a connection that has to wait because it exceeds its rate.
    func throttled() { throttledConnections.increment() }

    func refused(_ refusal: ConnectionCounter.Refusal) { refused[refusal]?.increment() }

    /// Creates the counter of publications whose payload the clients of the topic cannot get. All gateways count in the
    /// same metric.
    static func refusedPayloads() -> Counter {
        Counter(label: "hermes_mqtt_refused_total", dimensions: [("packet", "publish"), ("reason", "payload")])
    }
}
