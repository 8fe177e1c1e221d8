// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import Synchronization

/// The use of each budget, and the amounts that were refused or freed because of it. They are read when the metrics are
/// requested.
///
/// State: one `Mutex` around the last values.
final class BudgetGauges: Sendable {
    /// One budget's metrics.
    private struct Metrics: Sendable {
        let used: Gauge
        let limit: Gauge
        /// Counts refusals; nil if another budget counts them.
        let refused: Counter?

        init(_ budget: String, countsRefused: Bool) {
            let dimensions = [("budget", budget)]
            used = Gauge(label: "hermes_budget_used", dimensions: dimensions)
            limit = Gauge(label: "hermes_budget_limit", dimensions: dimensions)
            refused = countsRefused ? Counter(label: "hermes_budget_refused_total", dimensions: dimensions) : nil
        }
    }

    private let memory: MemoryBudget
    private let topics: TopicPlane
    private let messenger: Messenger
    private let budgets: [String: Metrics]
    private let last = Mutex<[String: Int]>([:])

    private static let names = [
        "memory", "topics", "mqtt_sessions", "mqtt_subscriptions", "mqtt_queued_messages", "mqtt_retained_messages",
    ]
    /// The budgets in bytes. The corresponding budgets of messages count their refusals.
    private static let namesOfBytes = ["mqtt_queued_bytes", "mqtt_retained_bytes"]

    private let inboxEntries = Gauge(label: "hermes_inbox_entries")
    private let inboxBytes = Gauge(label: "hermes_inbox_bytes")
    private let largestEntries = Gauge(label: "hermes_inbox_largest_entries")
    private let largestBytes = Gauge(label: "hermes_inbox_largest_bytes")
    private let inboxRefused = Counter(label: "hermes_budget_refused_total", dimensions: [("budget", "inbox")])
    private let unreadRefused = Counter(label: "hermes_budget_refused_total", dimensions: [("budget", "unread")])
    private let storedRefused = Counter(label: "hermes_budget_refused_total", dimensions: [("budget", "stored")])

    init(_ memory: MemoryBudget, _ topics: TopicPlane, _ messenger: Messenger) {
        self.memory = memory
        self.topics = topics
        self.messenger = messenger
        let counting = Self.names.map { ($0, Metrics($0, countsRefused: true)) }
        let others = Self.namesOfBytes.map { ($0, Metrics($0, countsRefused: false)) }
        budgets = Dictionary(uniqueKeysWithValues: counting + others)
    }

    /// Updates the metrics.
    ///
    /// - Parameter isForMetrics: whether the metrics are read in order to be shown. Only then are the gauges of the
    ///   largest inbox updated, because they cover the time since the metrics were last shown.
    func read(isForMetrics: Bool) {
        record("memory", memory.used, memory.limit, memory.reclaimedBytes)
        let backlog = topics.backlog
        record("topics", backlog.used, backlog.limit, backlog.dropped)
        readInboxes(isForMetrics: isForMetrics)
        let durable = messenger.durable
        let now = durable.statistics
        record("mqtt_sessions", now.sessions, durable.settings.sessions.total, Int(clamping: now.refusedSessions))
        record("mqtt_subscriptions", now.filters, durable.settings.filters.total, Int(clamping: now.refusedFilters))
        let queues = durable.queueStatistics
        // Either limit may cause a refusal, so each refusal is counted once.
        record("mqtt_queued_messages", queues.used.entries, queues.limit.entries, Int(clamping: queues.refused))
        record("mqtt_queued_bytes", queues.used.bytes, queues.limit.bytes, nil)
        let retained = durable.retained.statistics
        record("mqtt_retained_messages", retained.count, retained.limit.entries, Int(clamping: retained.refused))
        record("mqtt_retained_bytes", retained.bytes, retained.limit.bytes, nil)
    }

    /// - Parameter refused: the number of refusals since the start; nil if they are counted elsewhere.
    private func record(_ budget: String, _ used: Int, _ limit: Int, _ refused: Int?) {
        guard let metrics = budgets[budget] else { return }
        metrics.used.record(used)
        metrics.limit.record(limit)
        if let refused, let counter = metrics.refused { increment(counter, to: refused, of: budget) }
    }

    private func readInboxes(isForMetrics: Bool) {
        let inboxes = messenger.messageStore.inboxes
        let now = inboxes.now
        inboxEntries.record(now.holding.entries)
        inboxBytes.record(now.holding.bytes)
        if isForMetrics {
            let largest = inboxes.takeLargest()
            largestEntries.record(largest.entries)
            largestBytes.record(largest.bytes)
        }
        increment(inboxRefused, to: now.refused, of: "inbox")
        increment(unreadRefused, to: now.refusedUnread, of: "unread")
        increment(storedRefused, to: Int(clamping: messenger.messages.refusedStored), of: "stored")
    }

    private func increment(_ counter: Counter, to count: Int, of budget: String) {
        last.withLock { last in
            counter.increment(by: count - last[budget, default: 0])
            last[budget] = count
        }
    }
}
