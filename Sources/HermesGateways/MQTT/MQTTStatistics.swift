// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Synchronization

/// The broker's statistics below `$SYS/broker/`. They are published at an interval, and to each new subscriber. With
/// several nodes, the statistics describe all nodes together. Only the uptime and the version are those of this node.
///
/// State: a `Mutex` around the last values. No other code is called while it is held.
final class MQTTStatistics: Sendable {
    private struct State: Sendable {
        var isStarted = false
        var values: [String: String] = [:]
        var metrics: [ObjectIdentifier: GatewayMetrics] = [:]
    }

    private let state = Mutex(State())
    private let loops: LoopContexts
    private let durable: DurableSessions
    private let cluster: ClusterMember?
    private let interval: Duration
    private let startedAt = ContinuousClock.now
    private let version: String

    init(loops: LoopContexts, messenger: Messenger, interval: Duration, version: String) {
        self.loops = loops
        durable = messenger.durable
        cluster = messenger.cluster
        self.interval = interval
        self.version = version
    }

    /// Begins to publish; repeated calls do nothing.
    func start() {
        guard interval > .zero, let loop = loops.all.first else { return }
        let isFirst = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
        guard isFirst else { return }
        refresh()
        let period = TimeAmount(interval)
        loop.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { [weak self] task in
            guard let self else { return task.cancel() }
            self.refresh()
            self.publish(on: loop)
        }
    }

    /// Includes a listener's connections in the statistics.
    func count(_ metrics: GatewayMetrics) {
        state.withLock { $0.metrics[ObjectIdentifier(metrics)] = metrics }
    }

    /// Returns publications of the present values, for the topics that match a filter.
    func publications(matching filter: TopicFilter) -> [Publication] {
        guard filter.rawValue.utf8.first == UInt8(ascii: "$") else { return [] }
        return state.withLock { $0.values }.compactMap { name, value in
            guard let topic = TopicName(name), filter.matches(topic) else { return nil }
            return Self.publication(topic, value)
        }
    }

    private static func publication(_ topic: TopicName, _ value: String) -> Publication {
        Publication(topic: topic, payload: ByteBuffer(string: value), kind: Publication.plainKind, retain: true)
    }

    private func refresh() {
        let sessions = durable.statistics
        let own = figures(of: sessions)
        let all = cluster?.exchange(own) ?? own
        let retained = durable.retained.statistics
        let uptime = (ContinuousClock.now - startedAt).components.seconds
        let values = [
            "$SYS/broker/version": version,
            "$SYS/broker/uptime": "\(uptime) seconds",
            "$SYS/broker/clients/connected": "\(all.connected)",
            "$SYS/broker/clients/total": "\(all.connections)",
            "$SYS/broker/sessions/durable": "\(sessions.sessions)",
            "$SYS/broker/sessions/online": "\(all.online)",
            "$SYS/broker/packets/received": "\(all.framesReceived)",
            "$SYS/broker/packets/sent": "\(all.framesSent)",
            "$SYS/broker/bytes/received": "\(all.bytesReceived)",
            "$SYS/broker/bytes/sent": "\(all.bytesSent)",
            "$SYS/broker/retained messages/count": "\(retained.count)",
            "$SYS/broker/publish/messages/dropped": "\(all.dropped)",
        ]
        state.withLock { $0.values = values }
    }

    /// Returns the figures of this node alone.
    private func figures(of sessions: DurableSessions.Statistics) -> BrokerFigures {
        var figures = BrokerFigures()
        for metrics in state.withLock({ Array($0.metrics.values) }) {
            figures.connected += metrics.openTotal
            figures.connections += metrics.openedTotal
            figures.framesReceived += metrics.framesInTotal
            figures.framesSent += metrics.framesOutTotal
            figures.bytesReceived += metrics.bytesInTotal
            figures.bytesSent += metrics.bytesOutTotal
        }
        figures.online = sessions.online
        figures.dropped = sessions.dropped
        return figures
    }

    private func publish(on loop: LoopContext) {
        for (name, value) in state.withLock({ $0.values }) {
            // The server itself publishes these few messages, so no publisher has to be slowed down.
            guard let topic = TopicName(name) else { continue }
            _ = loop.topics.publish(Self.publication(topic, value), isPaced: false)
        }
    }
}
