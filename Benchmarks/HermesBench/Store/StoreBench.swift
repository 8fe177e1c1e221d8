// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesSQLite

/// `hermes-bench store`: measures how fast the store commits, without any network.
struct StoreBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Measure commits of 1:1 messages, beside a bare loop that writes the same rows.",
        discussion: "Needs no server: writes to a directory of its own, and removes that at the end."
    )

    @Option(help: ArgumentHelp("Where to write; a disk like the server's.", valueName: "directory"))
    var directory: String = FileManager.default.temporaryDirectory.path

    @Option(help: "How many users write to each other, in pairs.")
    var users: Int = 1000

    @Option(help: "How many commits.")
    var batches: Int = 1000

    @Option(help: "Messages of each commit.")
    var batchSize: Int = 256

    @Option(help: ArgumentHelp("Size of each message.", valueName: "bytes"))
    var payload: Int = 64

    @Flag(help: "Wait for the disk in each commit (durability: full).")
    var full = false

    func validate() throws {
        guard (2...1_000_000).contains(users) else { throw ValidationError("--users \(users): from 2") }
        guard (1...1_000_000).contains(batches) else { throw ValidationError("--batches \(batches): from 1") }
        guard (1...65_536).contains(batchSize) else { throw ValidationError("--batch-size \(batchSize): from 1") }
        guard (0...1_048_576).contains(payload) else { throw ValidationError("--payload \(payload): up to 1 MiB") }
    }

    func run() async throws {
        let measurement = StoreMeasurement(
            users: users,
            batches: batches,
            batchSize: batchSize,
            contentBytes: payload,
            durability: full ? .full : .normal
        )
        print(try await measurement.run(in: directory).description)
    }
}
