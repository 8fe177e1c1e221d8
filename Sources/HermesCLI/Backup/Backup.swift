// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes backup`.
struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a consistent copy of all data to a file, with or without a running server.",
        discussion: """
            The file is a complete database. The running server writes the file, so the server's user must be able to \
            create it. To restore the file, stop the server and run: hermes restore FILE

            Example: hermes backup /var/backups/hermes/monday.db
            """
    )

    @Argument(help: "The file to write; it must not exist yet.")
    var file: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        let path = URL(fileURLWithPath: file).path
        guard !FileManager.default.fileExists(atPath: path) else {
            throw Report.failure("\"\(path)\" exists already; choose another name")
        }
        switch try await Administrator(data).ask(.backup(path: path)) {
        case .backedUp(let accounts?, let bytes):
            try CommandOutput.confirm("wrote \(path): \(bytes) bytes, accounts: \(accounts)")
        case .backedUp(nil, let bytes):
            try CommandOutput.confirm(
                "wrote \(path): \(bytes) bytes; the accounts cannot be counted, because the database is damaged"
            )
        default:
            // A server of an earlier version reports neither the size nor the accounts.
            try CommandOutput.confirm("wrote \(path)")
        }
    }
}
