// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Metrics
import Synchronization

/// The counts of the core and the listeners, read when the metrics are requested.
///
/// State: one `Mutex` is held while all values are read, because two readers at once would mix up the last values. Each
/// group of last values has another `Mutex`, which is taken while the first one is held.
final class StateGauges: Sendable {
    private let open: [(count: @Sendable () -> Int, gauge: Gauge)]
    private let sessions = Gauge(label: "hermes_sessions")
    private let waiting = Gauge(label: "hermes_commit_waiting")
    private let commits = Counter(label: "hermes_commits_total")
    private let operations = Counter(label: "hermes_committed_operations_total")
    private let failures = Counter(label: "hermes_commits_failed_total")
    private let committing = FloatingPointCounter(label: "hermes_commit_seconds_total")
    private let delivering: HistogramSeries
    private let online = Gauge(label: "hermes_mqtt_sessions", dimensions: [("state", "online")])
    private let away = Gauge(label: "hermes_mqtt_sessions", dimensions: [("state", "away")])
    private let sessionsWaiting = Gauge(label: "hermes_mqtt_commit_waiting")
    private let sessionBytesWaiting = Gauge(label: "hermes_mqtt_commit_waiting_bytes")
    private let willsWaiting = Gauge(label: "hermes_mqtt_wills_waiting")
    private let willBytesWaiting = Gauge(label: "hermes_mqtt_wills_waiting_bytes")
    private let dropped = Counter(label: "hermes_mqtt_queue_full_total")
    private let handedOver = Counter(label: "hermes_mqtt_handed_over_total")
    private let messenger: Messenger
    private let wills: @Sendable () -> Holding
    private let budgets: BudgetGauges
    private let outbound: OutboundGauges
    private let reading = Mutex(())
    private let last = Mutex<CommitStatistics?>(nil)
    private let lastTimes = Mutex(DeliveryTimes())
    private let lastSessions = Mutex<DurableSessions.Statistics?>(nil)

    init(
        listeners: [Listener],
        webSockets: [WebSocketEndpoint],
        http: ConnectionCounter,
        messenger: Messenger,
        memory: MemoryBudget,
        topics: TopicPlane,
        wills: @escaping @Sendable () -> Holding,
        outbound: OutboundServices
    ) {
        self.wills = wills
        // The core counts the values of this histogram. Many values are added to it at once.
        delivering = MetricsRegistry.shared.histogram(
            "hermes_delivery_seconds",
            bounds: DeliveryTimes.bounds.map { Double($0) / 1e6 }
        )
        budgets = BudgetGauges(memory, topics, messenger)
        self.messenger = messenger
        self.outbound = OutboundGauges(outbound)
        func gauge(_ name: String) -> Gauge {
            Gauge(label: "hermes_connections_open", dimensions: [("gateway", name)])
        }
        let ofHTTP: (count: @Sendable () -> Int, gauge: Gauge) = ({ http.openHTTP }, gauge("http"))
        open =
            [ofHTTP] + listeners.map { listener in ({ listener.openConnections }, gauge(listener.name)) }
            + webSockets.map { socket in
                ({ socket.acceptor.openConnections }, gauge("\(socket.name).websocket"))
            }
    }

    /// The durations of deliveries since the start.
    var deliveryTimes: DeliveryTimes { messenger.traces.deliveryTimes }

    /// Updates the metrics.
    ///
    /// - Parameter isForMetrics: whether the metrics are read to be shown. Some metrics cover the time since they were
    ///   last shown.
    func read(isForMetrics: Bool = true) { reading.withLock { _ in readAll(isForMetrics: isForMetrics) } }

    private func readAll(isForMetrics: Bool) {
        outbound.read()
        budgets.read(isForMetrics: isForMetrics)
        for (count, gauge) in open { gauge.record(count()) }
        sessions.record(messenger.devices.count)
        let now = messenger.messages.statistics
        waiting.record(now.waiting)
        last.withLock { last in
            commits.increment(by: now.batches &- (last?.batches ?? 0))
            operations.increment(by: now.operations &- (last?.operations ?? 0))
            failures.increment(by: now.failedBatches &- (last?.failedBatches ?? 0))
            committing.increment(by: (now.committing - (last?.committing ?? .zero)) / .seconds(1))
            last = now
        }
        lastTimes.withLock { last in
            let times = deliveryTimes
            let news = times.since(last)
            delivering.add(counts: news.counts, sum: Double(news.sum) / 1e6)
            last = times
        }
        readSessions()
    }

    private func readSessions() {
        let now = messenger.durable.statistics
        online.record(now.online)
        away.record(now.sessions - now.online)
        sessionsWaiting.record(now.commits.waiting)
        sessionBytesWaiting.record(now.commits.waitingBytes)
        let wills = wills()
        willsWaiting.record(wills.entries)
        willBytesWaiting.record(wills.bytes)
        lastSessions.withLock { last in
            dropped.increment(by: now.dropped &- (last?.dropped ?? 0))
            handedOver.increment(by: now.handedOver &- (last?.handedOver ?? 0))
            last = now
        }
    }
}
