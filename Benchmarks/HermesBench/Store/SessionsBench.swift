// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesSQLite

/// `hermes-bench sessions`: measures how fast the store fills and empties the queues of durable sessions, without any
/// network.
struct SessionsBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract: "Measure the queues of durable MQTT sessions and retained publications in the store.",
        discussion: "Needs no server: writes to a directory of its own, and removes that at the end."
    )

    @Option(help: ArgumentHelp("Where to write; a disk like the server's.", valueName: "directory"))
    var directory: String = FileManager.default.temporaryDirectory.path

    @Option(help: "How many sessions.")
    var sessions: Int = 100

    @Option(help: "How many publications wait for each session.")
    var messages: Int = 1000

    @Option(help: "Publications of each commit.")
    var batchSize: Int = 256

    @Option(help: ArgumentHelp("Size of each publication.", valueName: "bytes"))
    var payload: Int = 64

    @Option(help: "How many topics are retained.")
    var retained: Int = 100_000

    @Flag(help: "Wait for the disk in each commit (durability: full).")
    var full = false

    func validate() throws {
        guard (1...100_000).contains(sessions) else { throw ValidationError("--sessions \(sessions): from 1") }
        guard (1...100_000).contains(messages) else { throw ValidationError("--messages \(messages): to 100,000") }
        guard (1...65_536).contains(batchSize) else { throw ValidationError("--batch-size \(batchSize): from 1") }
        guard (0...1_048_576).contains(payload) else { throw ValidationError("--payload \(payload): up to 1 MiB") }
        guard (0...10_000_000).contains(retained) else { throw ValidationError("--retained \(retained): from 0") }
    }

    func run() async throws {
        let measurement = SessionMeasurement(
            sessions: sessions,
            messages: messages,
            batchSize: batchSize,
            payloadBytes: payload,
            retained: retained,
            durability: full ? .full : .normal
        )
        print(try await measurement.run(in: directory))
    }
}
