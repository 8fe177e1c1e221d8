// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesSQLite
import Logging

/// Measures commits of 1:1 messages, and a plain loop that writes the same rows in the same batches.
struct StoreMeasurement: Sendable {
    /// The number of users, who write to each other in pairs.
    var users: Int
    /// The number of commits.
    var batches: Int
    /// The number of messages in a commit; each has two recipients.
    var batchSize: Int
    var contentBytes: Int
    var durability: SQLiteStore.Durability

    /// The figures of one measurement.
    struct Figures: Sendable {
        /// Messages per second over the whole run.
        let rate: Double
        /// The rate of the slowest twentieth of the run, in messages per second. It shows how even the rate is.
        let slowestRate: Double
        /// The slowest commit, in milliseconds.
        let slowestCommit: Double
        /// The processor time per message, in microseconds. It stays comparable on a busy machine.
        let processorTime: Double

        init(_ measured: BatchStopwatch, batchSize: Int) {
            let batchSeconds = measured.batchSeconds
            let total = batchSeconds.reduce(0, +)
            let part = max(batchSeconds.count / 20, 1)
            let slowest = stride(from: 0, to: batchSeconds.count - part + 1, by: part)
                .map { batchSeconds[$0..<$0 + part].reduce(0, +) }
                .max()
            rate = Double(batchSeconds.count * batchSize) / total
            slowestRate = Double(part * batchSize) / (slowest ?? total)
            slowestCommit = (batchSeconds.max() ?? 0) * 1000
            processorTime = measured.processorSeconds * 1_000_000 / Double(batchSeconds.count * batchSize)
        }
    }

    /// The figures of one run.
    struct Report: Sendable, CustomStringConvertible {
        let store: Figures
        let bare: Figures
        /// The figures of purging the store's messages after all messages were acknowledged.
        let purge: Figures

        /// The plain loop's processor time per message, divided by the store's.
        var ratio: Double { bare.processorTime / store.processorTime }

        var description: String {
            func line(_ name: String, _ figures: Figures) -> String {
                let rate = Int(figures.rate)
                let slowest = Int(figures.slowestRate)
                let commit = Int(figures.slowestCommit)
                let micros = (figures.processorTime * 10).rounded() / 10
                return "\(name): \(rate) messages/s (slowest twentieth \(slowest)/s, slowest commit \(commit) ms), "
                    + "\(micros) µs of processor time each\n"
            }
            return line("store", store) + line("bare loop", bare) + line("purge", purge)
                + "bare loop's processor time as a share of the store's: \(Int(ratio * 100)) %"
        }
    }

    /// Runs in two new directories inside `directory`, and removes the new directories at the end.
    func run(in directory: String) async throws -> Report {
        let base = directory + "/hermes-bench-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: base) }
        let bare = try await prepare(base + "/bare") { path in
            try BareLoop.run(self, database: path)
        }
        let (store, purge) = try await measureStore(base + "/store")
        return Report(store: store, bare: bare, purge: purge)
    }

    static let start = Timestamp(rawValue: 1_800_000_000_000)

    /// The sender and receiver of message `index`. The pairs are the same in both runs.
    func pair(_ index: Int) -> (sender: Int, receiver: Int) {
        let mixed = UInt64(index) &* 0x9E37_79B9_7F4A_7C15
        let sender = Int((mixed >> 33) % UInt64(users))
        return (sender, sender ^ 1 < users ? sender ^ 1 : sender - 1)
    }

    func id(_ index: Int) -> MessageID {
        let low = UInt64(index) &* 0xD6E8_FEB8_6659_FD93
        return MessageID(high: UInt64(Self.start.rawValue + Int64(index / 50)) << 16 | (low >> 48), low: low)
    }

    func clientID(_ index: Int) -> String { "c-\(index)" }

    /// Creates a store with the accounts, closes it, and calls `body` with the path of its database.
    private func prepare<Value>(_ directory: String, _ body: (String) throws -> Value) async throws -> Value {
        let store = try open(directory)
        _ = try await makePeople(in: store)
        try store.close()
        return try body(directory + "/" + SQLiteStore.fileName)
    }

    private func open(_ directory: String) throws -> SQLiteStore {
        let logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        return try SQLiteStore.open(directory: directory, durability: durability, logger: logger)
    }

    private func makePeople(in store: SQLiteStore) async throws -> [Principal] {
        var people: [Principal] = []
        guard let device = DeviceID("bench") else { return [] }
        for index in 0..<users {
            let name = NickName(stored: "bench\(index)", key: "bench\(index)")
            let new = NewAccount(nickName: name, password: PasswordHash(phc: ""))
            let user = try await store.create(new, now: Self.start).id
            people.append(Principal(user: user, nickName: name, device: device))
        }
        return people
    }

    private func measureStore(_ directory: String) async throws -> (commits: Figures, purge: Figures) {
        let store = try open(directory)
        let people = try await makePeople(in: store)
        let content = MessageContent(bytes: Array(repeating: 0x61, count: contentBytes))
        let expiry = Self.start.advanced(by: .seconds(30 * 24 * 3600))
        var stopwatch = BatchStopwatch()
        for batch in 0..<batches {
            let operations = (0..<batchSize).map { position in
                let index = batch * batchSize + position
                let (sender, receiver) = pair(index)
                return WriteOperation.append(
                    MessageAppend(
                        id: id(index),
                        draft: MessageDraft(
                            conversation: .direct(between: people[sender].user, and: people[receiver].user),
                            clientID: clientID(index),
                            content: content
                        ),
                        sender: people[sender],
                        sentAt: Self.start,
                        expiresAt: expiry,
                        recipients: [people[sender].user, people[receiver].user]
                    )
                )
            }
            try stopwatch.measure { _ = try store.commit(operations, now: Self.start) }
        }
        let purge = try await measurePurge(of: store, people)
        try store.close()
        return (Figures(stopwatch, batchSize: batchSize), purge)
    }

    /// Acknowledges all messages, and measures their purge. Each message has two entries, so a purge of twice the batch
    /// size handles one batch.
    private func measurePurge(of store: SQLiteStore, _ people: [Principal]) async throws -> Figures {
        for person in people {
            let opening = DeviceOpening(user: person.user, device: DeviceDescription(id: person.device))
            _ = try await store.open(opening, now: Self.start)
        }
        let everything = people.map { WriteOperation.acknowledge($0.user, $0.device, upTo: .max) }
        _ = try store.commit(everything, now: Self.start)
        var stopwatch = BatchStopwatch()
        var isDone = false
        while !isDone {
            let began = stopwatch.start()
            isDone = try await store.purge(now: Self.start, limit: batchSize * 2) == 0
            if !isDone { stopwatch.stop(began) }
        }
        return Figures(stopwatch, batchSize: batchSize)
    }
}

/// Measures the time of each batch, and the processor time of all batches together.
struct BatchStopwatch {
    private(set) var batchSeconds: [Double] = []
    private(set) var processorSeconds: Double = 0

    mutating func measure(_ body: () throws -> Void) rethrows {
        let began = start()
        try body()
        stop(began)
    }

    func start() -> (wall: ContinuousClock.Instant, processor: clock_t) { (.now, clock()) }

    mutating func stop(_ began: (wall: ContinuousClock.Instant, processor: clock_t)) {
        batchSeconds.append((.now - began.wall) / .seconds(1))
        processorSeconds += Double(clock() - began.processor) / Double(CLOCKS_PER_SEC)
    }
}
