// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesSQLite

/// `hermes-bench logins`: measures how fast devices log in by token, without any network.
struct LoginsBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logins",
        abstract: "Measure logins by token over the store: known devices, new ones, and many at once.",
        discussion: "Needs no server: writes to a directory of its own, and removes that at the end."
    )

    @Option(help: ArgumentHelp("Where to write; a disk like the server's.", valueName: "directory"))
    var directory: String = FileManager.default.temporaryDirectory.path

    @Option(help: "How many accounts, each with one device.")
    var accounts: Int = 10_000

    @Option(help: "How many logins.")
    var logins: Int = 100_000

    @Option(help: "How many are under way at once.")
    var atOnce: Int = 64

    @Flag(help: "Wait for the disk in each commit (durability: full).")
    var full = false

    func validate() throws {
        guard (1...1_000_000).contains(accounts) else { throw ValidationError("--accounts \(accounts): from 1") }
        guard (1...10_000_000).contains(logins) else { throw ValidationError("--logins \(logins): from 1") }
        guard (1...100_000).contains(atOnce) else { throw ValidationError("--at-once \(atOnce): to 100,000") }
    }

    func run() async throws {
        let measurement = LoginMeasurement(
            accounts: accounts,
            logins: logins,
            atOnce: atOnce,
            durability: full ? .full : .normal
        )
        print(try await measurement.run(in: directory))
    }
}
