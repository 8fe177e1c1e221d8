// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesSQLite
import Logging
import NIOCore

/// Measures the queues of durable sessions: filling, reading and emptying them, and passing messages through them.
struct SessionMeasurement: Sendable {
    var sessions: Int
    /// The number of messages in each session's queue at the end.
    var messages: Int
    /// The number of publications in a commit.
    var batchSize: Int
    var payloadBytes: Int
    /// The number of retained topics.
    var retained: Int
    var durability: SQLiteStore.Durability

    /// Measures in a new directory inside `directory`, and removes the new directory at the end.
    ///
    /// - Returns: a line for each step.
    func run(in directory: String) async throws -> String {
        let base = directory + "/hermes-bench-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: base) }
        let store = try open(base)
        var lines: [String] = []
        let ids = try (0..<sessions).map { try self.session($0, in: store) }
        lines.append(try passing(ids, store))
        lines.append(try filling(ids, store))
        lines.append(try await reading(ids, store))
        lines.append(try completing(ids, store))
        lines.append(try sharing(ids, store))
        lines.append(try await reading(ids, store))
        lines.append(try completing(ids, store))
        lines += try await retaining(store)
        try store.close()
        return lines.joined(separator: "\n")
    }

    private static let now = Timestamp(rawValue: 1_800_000_000_000)

    private func open(_ directory: String) throws -> SQLiteStore {
        let logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        return try SQLiteStore.open(directory: directory, durability: durability, logger: logger)
    }

    private func session(_ index: Int, in store: SQLiteStore) throws -> DurableSessionID {
        let key = SessionKey(owner: .subject("bench"), clientID: "client\(index)")
        let outcomes = try store.commit([.open(key, clean: false, expiry: nil)], now: Self.now)
        guard case .opened(let session)? = outcomes.first else { throw BenchFailure("no session") }
        return session.id
    }

    private func publication(_ topic: String, retain: Bool = false) -> StoredPublication {
        StoredPublication(
            topic: TopicName(checked: topic),
            payload: ByteBuffer(repeating: 0x61, count: payloadBytes),
            qos: .atLeastOnce,
            retain: retain,
            publishedAt: Self.now
        )
    }

    private func line(_ name: String, _ stopwatch: BatchStopwatch, count: Int) -> String {
        let seconds = stopwatch.batchSeconds.reduce(0, +)
        let micros = (stopwatch.processorSeconds * 1_000_000 / Double(count) * 100).rounded() / 100
        let slowest = Int(((stopwatch.batchSeconds.max() ?? 0) * 1000).rounded())
        return
            "\(name): \(micros) µs of processor time each, \(Int(Double(count) / seconds))/s, slowest step \(slowest) ms"
    }

    /// Commits batches of publications. Each publication is for one session. Successive publications are for different
    /// sessions, in a scattered order.
    ///
    /// - Parameter after: gets the outcomes and targets of a commit. Returns the operations with which the next commit
    ///   begins.
    private func publishing(
        _ count: Int,
        _ ids: [DurableSessionID],
        _ store: SQLiteStore,
        _ stopwatch: inout BatchStopwatch,
        after: ([SessionOutcome], [DurableSessionID]) -> [SessionOperation]
    ) throws {
        var next = 0
        var extra: [SessionOperation] = []
        while next < count {
            var operations = extra
            var targets: [DurableSessionID] = []
            for index in next..<min(next + batchSize, count) {
                let id = ids[(index &* 7_919) % ids.count]
                targets.append(id)
                operations.append(
                    .publish(
                        publication("bench/topic/\(id.rawValue)"),
                        targets: [PublicationTarget(session: id, qos: .atLeastOnce)],
                        received: nil,
                        retains: false
                    )
                )
            }
            var outcomes: [SessionOutcome] = []
            try stopwatch.measure { outcomes = try store.commit(operations, now: Self.now) }
            extra = after(Array(outcomes.dropFirst(extra.count)), targets)
            next += batchSize
        }
        if !extra.isEmpty { _ = try store.commit(extra, now: Self.now) }
    }

    /// Commits publications as if the clients were connected: each commit also completes the publications of the
    /// previous commit.
    private func passing(_ ids: [DurableSessionID], _ store: SQLiteStore) throws -> String {
        var stopwatch = BatchStopwatch()
        let count = sessions * messages
        try publishing(count, ids, store, &stopwatch) { outcomes, targets in
            var completed: [DurableSessionID: [UInt64]] = [:]
            for (outcome, id) in zip(outcomes, targets) {
                if case .published(let seqs) = outcome { completed[id, default: []] += seqs }
            }
            return completed.map { .completed($0.key, $0.value) }
        }
        return line("committed and completed, one target", stopwatch, count: count)
    }

    private func filling(_ ids: [DurableSessionID], _ store: SQLiteStore) throws -> String {
        var stopwatch = BatchStopwatch()
        let count = sessions * messages
        try publishing(count, ids, store, &stopwatch) { _, _ in [] }
        return line("committed, one target", stopwatch, count: count)
    }

    /// Commits publications. Each publication is for all sessions.
    private func sharing(_ ids: [DurableSessionID], _ store: SQLiteStore) throws -> String {
        var stopwatch = BatchStopwatch()
        let targets = ids.map { PublicationTarget(session: $0, qos: .atLeastOnce) }
        let size = max(1, batchSize / 8)
        for start in stride(from: 0, to: messages, by: size) {
            let operations = (start..<min(start + size, messages)).map { _ in
                SessionOperation.publish(publication("bench/all"), targets: targets, received: nil, retains: false)
            }
            try stopwatch.measure { _ = try store.commit(operations, now: Self.now) }
        }
        return line("committed, \(sessions) targets, per target", stopwatch, count: messages * sessions)
    }

    private func reading(_ ids: [DurableSessionID], _ store: SQLiteStore) async throws -> String {
        var stopwatch = BatchStopwatch()
        var count = 0
        for id in ids {
            var last: UInt64 = 0
            while true {
                let began = stopwatch.start()
                let page = try await store.queued(of: id, after: last, limit: 512, maxBytes: .max)
                stopwatch.stop(began)
                guard let newest = page.last?.seq else { break }
                last = newest
                count += page.count
            }
        }
        return line("read in pages of 512", stopwatch, count: count)
    }

    /// Completes the publications page by page, as clients do. Each commit completes a page of every session.
    private func completing(_ ids: [DurableSessionID], _ store: SQLiteStore) throws -> String {
        var stopwatch = BatchStopwatch()
        var last: [UInt64] = []
        for index in ids.indices {
            let outcomes = try store.commit(
                [.open(SessionKey(owner: .subject("bench"), clientID: "client\(index)"), clean: false, expiry: nil)],
                now: Self.now
            )
            guard case .opened(let session)? = outcomes.first else { throw BenchFailure("no session") }
            last.append(session.head - UInt64(session.queuedCount))
        }
        for start in stride(from: 0, to: messages, by: 512) {
            let count = UInt64(min(512, messages - start))
            let operations = zip(ids, last).map { id, last in
                SessionOperation.completed(id, Array(last + UInt64(start) + 1...last + UInt64(start) + count))
            }
            try stopwatch.measure { _ = try store.commit(operations, now: Self.now) }
        }
        return line("completed in pages of 512", stopwatch, count: messages * sessions)
    }

    private func retaining(_ store: SQLiteStore) async throws -> [String] {
        guard retained > 0 else { return [] }
        var writing = BatchStopwatch()
        for start in stride(from: 0, to: retained, by: batchSize) {
            let operations = (start..<min(start + batchSize, retained)).map { index in
                SessionOperation.retain(publication("site/\(index % 100)/device/\(index)/state", retain: true))
            }
            try writing.measure { _ = try store.commit(operations, now: Self.now) }
        }
        var loading = BatchStopwatch()
        let sessions = DurableSessions(store: store, time: SystemTime())
        let began = loading.start()
        try await sessions.load()
        loading.stop(began)
        var matching = BatchStopwatch()
        var found = 0
        for filter in ["site/+/device/+/state", "#", "site/7/#", "site/+/device/4242/state"] {
            guard let filter = TopicFilter(filter) else { continue }
            matching.measure { found += sessions.retained.matching(filter, now: Self.now).count }
        }
        await sessions.shutdown()
        return [
            line("retained, committed", writing, count: retained),
            line("retained, read at the start", loading, count: retained),
            line("retained, matched", matching, count: found),
        ]
    }
}
