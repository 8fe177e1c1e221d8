// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
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
    private let inboxCommits = CommitMetrics(kind: "inbox")
    private let sessionCommits = CommitMetrics(kind: "sessions")
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
    private let certificates: ServerCertificates
    private let directory: String?
    private let reading = Mutex(())
    private let lastTimes = Mutex(DeliveryTimes())
    private let lastSessions = Mutex<DurableSessions.Statistics?>(nil)

    /// - Parameter directory: the data directory; nil if nothing is kept on the disk.
    init(
        listeners: [Listener],
        webSockets: [WebSocketEndpoint],
        http: ConnectionCounter,
        messenger: Messenger,
        memory: MemoryBudget,
        topics: TopicPlane,
        wills: @escaping @Sendable () -> Holding,
        outbound: OutboundServices,
        certificates: ServerCertificates,
        directory: String?
    ) {
        self.certificates = certificates
        self.directory = directory
        self.wills = wills
        // The core counts the values of this histogram. Many values are added to it at once.
        delivering = MetricsRegistry.shared.histogram(
            "hermes_delivery_seconds",
            bounds: DeliveryTimes.bounds.map { Double($0) / 1e6 }
        )
        budgets = BudgetGauges(memory, topics, messenger)
        self.messenger = messenger
        self.outbound = OutboundGauges(outbound)
        NativeStatistics.start()
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
    /// - Parameter isForMetrics: whether the metrics are read in order to be shown. Some metrics cover the time since
    ///   they were last shown.
    func read(isForMetrics: Bool = true) { reading.withLock { _ in readAll(isForMetrics: isForMetrics) } }

    private func readAll(isForMetrics: Bool) {
        outbound.read()
        budgets.read(isForMetrics: isForMetrics)
        for (count, gauge) in open { gauge.record(count()) }
        sessions.record(messenger.devices.count)
        let now = messenger.messages.statistics
        waiting.record(now.waiting)
        inboxCommits.read(now)
        if isForMetrics {
            readDisk()
            readCertificates()
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
        sessionCommits.read(now.commits)
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

    private func readCertificates() {
        for (name, expiry) in certificates.expiries {
            let dimensions = [("gateway", name)]
            Gauge(label: "hermes_certificate_expiry_timestamp_seconds", dimensions: dimensions).record(expiry)
        }
    }

    /// Reads the free bytes of the data directory's file system. The gauge is created with the first known value,
    /// because a value of 0 would cause an alarm.
    private func readDisk() {
        guard let directory,
            let attributes = try? FileManager.default.attributesOfFileSystem(forPath: directory),
            let free = attributes[.systemFreeSize] as? NSNumber
        else { return }
        Gauge(label: "hermes_store_free_bytes").record(free.doubleValue)
    }
}

/// The metrics of one committer, with the label `kind`.
///
/// State: one `Mutex` around the last values.
private final class CommitMetrics: Sendable {
    private let commits: Counter
    private let operations: Counter
    private let failures: Counter
    private let seconds: FloatingPointCounter
    private let last = Mutex<CommitStatistics?>(nil)

    init(kind: String) {
        let dimensions = [("kind", kind)]
        commits = Counter(label: "hermes_commits_total", dimensions: dimensions)
        operations = Counter(label: "hermes_committed_operations_total", dimensions: dimensions)
        failures = Counter(label: "hermes_commits_failed_total", dimensions: dimensions)
        seconds = FloatingPointCounter(label: "hermes_commit_seconds_total", dimensions: dimensions)
    }

    /// Adds the counts since the last call.
    func read(_ now: CommitStatistics) {
        last.withLock { last in
            commits.increment(by: now.batches &- (last?.batches ?? 0))
            operations.increment(by: now.operations &- (last?.operations ?? 0))
            failures.increment(by: now.failedBatches &- (last?.failedBatches ?? 0))
            seconds.increment(by: (now.committing - (last?.committing ?? .zero)) / .seconds(1))
            last = now
        }
    }
}
