// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesSQLite

/// How fast the embedded store commits, without any network; for `hermes bench store`.
package struct StoreMeasurement: Sendable {
    /// How many users write to each other, in pairs.
    package var users: Int
    /// How many commits.
    package var batches: Int
    /// Messages of each commit.
    package var batchSize: Int
    package var contentBytes: Int
    /// Waits for the disk in each commit (`durability: full`).
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
    /// - Returns: the figures of the store and of a bare loop that writes the same rows, for people.
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

/// How fast the embedded store queues publications for durable sessions; for `hermes bench sessions`.
package struct SessionMeasurement: Sendable {
    /// How many sessions.
    package var sessions: Int
    /// How many publications wait for each.
    package var messages: Int
    /// Publications of each commit.
    package var batchSize: Int
    package var payloadBytes: Int
    /// How many topics are retained.
    package var retained: Int
    /// Waits for the disk in each commit (`durability: full`).
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
    /// - Returns: a line for each step, for people.
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
