// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import Logging
import Metrics
import NIOCore
import ServiceLifecycle
import Synchronization

/// One of the figures that the server keeps over time.
struct Figure: Sendable {
    /// The way in which a figure is derived from the metrics.
    enum Source: Sendable {
        /// The value of a gauge: the sum of the series whose labels contain the second text.
        case gauge(String, String = "")
        /// The growth of counters per second: the sum of the series whose labels contain the text `labels`.
        case rate([(name: String, labels: String)])
        /// The growth of one counter divided by the growth of another, times 1,000.
        case mean(String, each: String)
        /// Measured by ``Figures`` itself.
        case measured(Measurement)
    }

    enum Measurement: Sendable {
        /// A percentile of the delivery times since the last sample, in milliseconds. `share` is the share of the
        /// deliveries that took at most this time.
        case delivery(share: Double)
        case loopDelay
        case processor
        case memory
        case storedBytes
        case freeBytes
    }

    /// The name. The part before the dot is the name of the plot that shows the figure.
    let name: String
    let source: Source

    init(_ name: String, _ source: Source) {
        self.name = name
        self.source = source
    }

    /// Returns all figures.
    ///
    /// - Parameter gateways: the names of the listeners, and of the WebSockets behind the HTTP port.
    static func all(gateways: [String]) -> [Figure] {
        gateways.prefix(32).map { Figure("connections.\($0)", .gauge("hermes_connections_open", "gateway=\"\($0)\"")) }
            + [
                Figure("opened.opened", .rate([("hermes_connections_opened_total", "")])),
                Figure("opened.refused", .rate([("hermes_connections_refused_total", "")])),
                Figure("messages.in", .rate([("hermes_messages_received_total", "")])),
                Figure("messages.out", .rate([("hermes_messages_sent_total", "")])),
                Figure("messages.delivered", .rate([("hermes_deliveries_total", "")])),
                Figure("latency.p50_ms", .measured(.delivery(share: 0.5))),
                Figure("latency.p99_ms", .measured(.delivery(share: 0.99))),
                Figure("frames.in", .rate([("hermes_frames_received_total", "")])),
                Figure("frames.out", .rate([("hermes_frames_sent_total", "")])),
                Figure("bytes.in", .rate([("hermes_bytes_received_total", "")])),
                Figure("bytes.out", .rate([("hermes_bytes_sent_total", "")])),
                Figure("sessions.devices", .gauge("hermes_sessions")),
                Figure("sessions.mqtt_online", .gauge("hermes_mqtt_sessions", "online")),
                Figure("sessions.mqtt_away", .gauge("hermes_mqtt_sessions", "away")),
                Figure("commits.operations", .rate([("hermes_committed_operations_total", "")])),
                Figure("commits.commits", .rate([("hermes_commits_total", "")])),
                Figure("commits.failed", .rate([("hermes_commits_failed_total", "")])),
                Figure("waiting.operations", .gauge("hermes_commit_waiting")),
                Figure("waiting.mqtt", .gauge("hermes_mqtt_commit_waiting")),
                Figure("dropped.slow_reader", .rate([("hermes_frames_dropped_total", "")])),
                Figure(
                    "dropped.queue_full",
                    .rate([("hermes_mqtt_messages_dropped_total", "queue_full"), ("hermes_mqtt_queue_full_total", "")])
                ),
                Figure("dropped.too_large", .rate([("hermes_mqtt_messages_dropped_total", "too_large")])),
                Figure("dropped.expired", .rate([("hermes_mqtt_messages_dropped_total", "expired")])),
                Figure("dropped.not_stored", .rate([("hermes_mqtt_messages_dropped_total", "not_stored")])),
                Figure("dropped.too_many_joins", .rate([("hermes_mqtt_messages_dropped_total", "too_many_joins")])),
                Figure("dropped.forbidden", .rate([("hermes_mqtt_refused_total", "\"rules\"")])),
                Figure("dropped.events", .rate([("hermes_events_dropped_total", "")])),
                Figure("delivered.in_1s", .rate([("hermes_client_deliveries_total", "\"1s\"")])),
                Figure("delivered.in_10s", .rate([("hermes_client_deliveries_total", "\"10s\"")])),
                Figure("delivered.later", .rate([("hermes_client_deliveries_total", "\"later\"")])),
                Figure("delivered.never", .rate([("hermes_client_deliveries_total", "\"never\"")])),
                Figure("inbox.entries", .gauge("hermes_inbox_entries")),
                Figure("inbox.bytes", .gauge("hermes_inbox_bytes")),
                Figure("push.delivered", .rate([("hermes_push_notifications_total", "\"delivered\"")])),
                Figure("push.refused", .rate([("hermes_push_notifications_total", "\"refused\"")])),
                Figure("push.retry", .rate([("hermes_push_notifications_total", "\"retry\"")])),
                Figure("push.token_gone", .rate([("hermes_push_notifications_total", "\"token_gone\"")])),
                Figure("webhooks.posted", .rate([("hermes_webhooks_posted_total", "")])),
                Figure("webhooks.failed", .rate([("hermes_webhooks_failed_total", "")])),
                Figure(
                    "webhooks.lost",
                    .rate([("hermes_webhooks_dropped_total", ""), ("hermes_webhooks_given_up_total", "")])
                ),
                Figure("webhooks_waiting.waiting", .gauge("hermes_webhooks_waiting")),
                Figure("delay.event_loop_ms", .measured(.loopDelay)),
                Figure("delay.commit_ms", .mean("hermes_commit_seconds_total", each: "hermes_commits_total")),
                Figure("processor.percent", .measured(.processor)),
                Figure("memory.resident", .measured(.memory)),
                Figure("disk.data", .measured(.storedBytes)),
                Figure("disk_free.free", .measured(.freeBytes)),
            ]
    }
}

/// Reads the metrics every ten seconds and keeps the history of the figures. Thread-safe.
///
/// State: one `Mutex` around the history and the counters' last values.
final class Figures: Sendable {
    private struct State {
        var history: FigureHistory
        var last: [Total] = []
        var lastAt: Duration?
        var lastProcessor: Double?
        var lastTimes: DeliveryTimes?
    }

    static let fileName = "figures"

    let figures: [Figure]
    private let gauges: StateGauges
    private let registry: MetricsRegistry
    private let directory: String?
    private let loops: [any EventLoop]
    private let state: Mutex<State>
    /// The longest delay of an event loop since the last sample, in nanoseconds.
    private let slowest = Atomic<Int64>(0)
    private let loopDelay = Gauge(label: "hermes_event_loop_delay_seconds")

    /// - Parameters:
    ///   - directory: the data directory; nil if nothing is kept on the disk.
    ///   - loops: the loops whose delay is measured.
    init(
        gateways: [String],
        gauges: StateGauges,
        directory: String?,
        loops: [any EventLoop],
        registry: MetricsRegistry = .shared
    ) {
        figures = Figure.all(gateways: gateways)
        self.gauges = gauges
        self.registry = registry
        self.directory = directory
        self.loops = loops
        let names = figures.map(\.name)
        let stored = directory.flatMap { Self.file($0).read() }.flatMap(FigureHistory.init(bytes:))
        state = Mutex(State(history: stored?.renamed(names) ?? FigureHistory(names: names)))
    }

    var history: FigureHistory { state.withLock { $0.history } }

    // MARK: Sampling

    /// Measures how late each event loop runs a task. The results count for the next sample.
    func probe() {
        for loop in loops {
            let asked = NIODeadline.now()
            loop.execute { [self] in
                let delay = (NIODeadline.now() - asked).nanoseconds
                var seen = slowest.load(ordering: .relaxed)
                while delay > seen {
                    let result = slowest.weakCompareExchange(expected: seen, desired: delay, ordering: .relaxed)
                    if result.exchanged { return }
                    seen = result.original
                }
            }
        }
    }

    /// Reads all figures, and adds their values to the history.
    func sample(at time: Timestamp, uptime: Duration) {
        gauges.read(isForMetrics: false)
        let snapshot = registry.snapshot()
        let process = ProcessMetrics.read()
        let delay = Double(slowest.exchange(0, ordering: .relaxed)) / 1e9
        loopDelay.record(delay)
        let times = gauges.deliveryTimes
        let disk = directory.map(Self.disk)
        let totals = figures.map { Self.total($0.source, in: snapshot) }
        state.withLock { state in
            let seconds = state.lastAt.map { (uptime - $0) / .seconds(1) }
            let isFirst = state.last.isEmpty
            var values: [Float?] = []
            for (index, figure) in figures.enumerated() {
                let value: Double? =
                    switch figure.source {
                    case .gauge: totals[index].value
                    case .rate:
                        if let seconds, seconds > 0, !isFirst {
                            max(0, totals[index].value - state.last[index].value) / seconds
                        } else {
                            nil
                        }
                    case .mean: isFirst ? nil : totals[index].mean(since: state.last[index])
                    case .measured(.delivery(let share)):
                        state.lastTimes.flatMap { times.since($0).quantile(share) }.map { $0 / 1000 }
                    case .measured(.loopDelay): delay * 1000
                    case .measured(.processor):
                        if let seconds, seconds > 0, let last = state.lastProcessor {
                            100 * max(0, process.cpuSeconds - last) / seconds
                        } else {
                            nil
                        }
                    case .measured(.memory): process.residentBytes.map(Double.init)
                    case .measured(.storedBytes): disk?.stored
                    case .measured(.freeBytes): disk?.free
                    }
                values.append(value.map(Float.init))
            }
            state.last = totals
            state.lastAt = uptime
            state.lastProcessor = process.cpuSeconds
            state.lastTimes = times
            state.history.add(values, at: time)
        }
    }

    /// The sum of the metrics of a figure.
    private struct Total {
        var value: Double
        /// The number of values in the sum; only for ``Figure/Source/mean(_:each:)``.
        var count = 0.0

        /// Returns the mean of the values since the last total, times 1,000; nil if there are no new values.
        func mean(since last: Total) -> Double? {
            count > last.count ? 1000 * (value - last.value) / (count - last.count) : nil
        }
    }

    private static func total(_ source: Figure.Source, in snapshot: [String: [String: Double]]) -> Total {
        func sum(_ name: String, _ labels: String) -> Double {
            (snapshot[name] ?? [:]).reduce(0) { labels.isEmpty || $1.key.contains(labels) ? $0 + $1.value : $0 }
        }
        switch source {
        case .gauge(let name, let labels): return Total(value: sum(name, labels))
        case .rate(let counters): return Total(value: counters.reduce(0) { $0 + sum($1.name, $1.labels) })
        case .mean(let name, let each): return Total(value: sum(name, ""), count: sum(each, ""))
        case .measured: return Total(value: 0)
        }
    }

    /// Returns the bytes of the data directory, and the free bytes of its file system.
    private static func disk(_ directory: String) -> (stored: Double, free: Double?) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        let stored = names.reduce(0.0) { sum, name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
            return sum + (number(attributes?[.size]) ?? 0)
        }
        let system = try? FileManager.default.attributesOfFileSystem(forPath: directory)
        return (stored, number(system?[.systemFreeSize]))
    }

    private static func number(_ value: Any?) -> Double? { (value as? NSNumber)?.doubleValue }

    // MARK: The file

    private static func file(_ directory: String) -> KeptFile {
        KeptFile(fileName, in: directory, maxBytes: FigureHistory.maxBytes)
    }

    /// Replaces the file of the history in one step. The file is in the data directory.
    func save() throws {
        guard let directory else { return }
        try Self.file(directory).write(history.bytes)
    }
}

/// Samples the figures, and writes them to the disk every 300 seconds and when the server stops.
struct FiguresService: Service {
    /// The time between two probes of the event loops.
    private static let probeInterval = Duration.seconds(1)
    private static let saveInterval = Duration.seconds(300)

    let figures: Figures
    let time: any TimeSource
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var sampled: Int64?
            var savedAt = time.uptime()
            while !Task.isCancelled {
                figures.probe()
                sampled = sample(after: sampled)
                let now = time.uptime()
                if now - savedAt >= Self.saveInterval {
                    savedAt = now
                    save()
                }
                // When the server stops, the sleep throws and the loop ends.
                try? await Task.sleep(for: Self.probeInterval)
            }
        }
        save()
    }

    /// Samples the figures if a new row of the history has begun. There is one sample for each row. A fixed wait of
    /// ten seconds could skip a row.
    ///
    /// - Parameter last: the row of the last sample; nil if there was none.
    /// - Returns: the present row.
    func sample(after last: Int64?) -> Int64 {
        // This is not `latest()`, because a clock that is ahead for a moment must not move the history.
        let now = time.now()
        let row = now.rawValue / FigureHistory.interval
        if row != last { figures.sample(at: now, uptime: time.uptime()) }
        return row
    }

    private func save() {
        do {
            try figures.save()
        } catch {
            logger.warning("figures not written", metadata: ["error": "\(error)"])
        }
    }
}
