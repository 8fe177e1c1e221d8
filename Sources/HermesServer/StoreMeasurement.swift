// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesSQLite

/// Measures commits of the embedded store, without a network; for `hermes bench store`.
package struct StoreMeasurement: Sendable {
    /// The number of users, who write to each other in pairs.
    package var users: Int
    /// The number of commits.
    package var batches: Int
    /// Messages in each commit.
    package var batchSize: Int
    package var contentBytes: Int
    /// Whether each commit waits for the disk (`durability: full`).
    package var waitsForDisk: Bool

    package init(users: Int, batches: Int, batchSize: Int, contentBytes: Int, waitsForDisk: Bool) {
        self.users = users
        self.batches = batches
        self.batchSize = batchSize
        self.contentBytes = contentBytes
        self.waitsForDisk = waitsForDisk
    }

    /// Measures in a directory of its own below `directory`, which is removed at the end.
    ///
    /// - Returns: the figures of the store and of a plain loop that writes the same rows.
    package func run(in directory: String) async throws -> String {
        let benchmark = StoreBenchmark(
            users: users,
            batches: batches,
            batchSize: batchSize,
            contentBytes: contentBytes,
            durability: waitsForDisk ? .full : .normal
        )
        return try await benchmark.run(in: directory).description
    }
}

/// Measures how fast the embedded store queues publications for durable sessions; for `hermes bench sessions`.
package struct SessionMeasurement: Sendable {
    /// The number of sessions.
    package var sessions: Int
    /// The number of waiting publications of each.
    package var messages: Int
    /// Publications in each commit.
    package var batchSize: Int
    package var payloadBytes: Int
    /// The number of retained topics.
    package var retained: Int
    /// Whether each commit waits for the disk (`durability: full`).
    package var waitsForDisk: Bool

    package init(
        sessions: Int,
        messages: Int,
        batchSize: Int,
        payloadBytes: Int,
        retained: Int,
        waitsForDisk: Bool
    ) {
        self.sessions = sessions
        self.messages = messages
        self.batchSize = batchSize
        self.payloadBytes = payloadBytes
        self.retained = retained
        self.waitsForDisk = waitsForDisk
    }

    /// Measures in a directory of its own below `directory`, which is removed at the end.
    ///
    /// - Returns: a line for each step.
    package func run(in directory: String) async throws -> String {
        let benchmark = SessionBenchmark(
            sessions: sessions,
            messages: messages,
            batchSize: batchSize,
            payloadBytes: payloadBytes,
            retained: retained,
            durability: waitsForDisk ? .full : .normal
        )
        return try await benchmark.run(in: directory)
    }
}
