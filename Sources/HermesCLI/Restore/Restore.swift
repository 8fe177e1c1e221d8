// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes restore`.
struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Replace the database of a stopped server with a backup.",
        discussion: """
            Stop the server first. The command checks the whole backup before it changes anything. It keeps the former \
            database in a folder replaced-TIME of the data directory. If the command is interrupted, the data \
            directory has either the former database or the restored database. In that case, run the command again.

            After the restore, start the server. Clients learn that their inboxes were reset, and fetch their entries \
            again.

            To undo a restore, restore the database in the folder: hermes restore replaced-TIME/hermes.db

            Exit codes: 1 if there is no such file; 65 if the file is damaged; 73 or 74 if the data directory or its \
            disk cannot be written; 75 if a server uses the data directory; 76 if the file belongs to a newer version \
            or to another program; 78 if there is no such data directory.

            Examples:
              hermes restore /var/backups/hermes/monday.db
              hermes restore /var/backups/hermes/monday.db --data /var/lib/hermes
            """
    )

    @Argument(help: "A file that hermes backup has written.")
    var file: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        let path = URL(fileURLWithPath: file).path
        guard FileManager.default.fileExists(atPath: path) else {
            throw Report.failure("there is no file \"\(path)\"")
        }
        let restored: String
        do throws(ServerFailure) {
            let arguments = data.data.map { ["--data.directory", $0] } ?? []
            restored = try HermesServer.restore(path, arguments: arguments, file: data.config)
        } catch {
            throw Report.failure(error)
        }
        try CommandOutput.confirm(restored)
    }
}
