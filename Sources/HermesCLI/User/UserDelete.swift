// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

struct UserDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete an account and all its data. This cannot be undone.",
        discussion: """
            Deletes the account's devices, tokens, inbox, contacts, memberships of groups and MQTT sessions, and ends \
            its connections. A group that the account owned gets a new owner: an administrator or, if there is none, a \
            member. A group without other members is dissolved. Messages to others stay. The account's name is free \
            once the server has removed all publications that are retained below user/NAME/. To lock a user out for a \
            while, use "hermes user disable".

            Examples:
              hermes user delete ben
              hermes user delete ben --yes
            """
    )

    @Argument(help: "The name.")
    var name: String

    @Flag(name: .long, help: "Do not ask for confirmation; required without a terminal.")
    var yes = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard try yes || Self.isConfirmed(name) else { throw Report.failure("nothing was deleted") }
        _ = try await Administrator(data).ask(.deleteUser(nickName: name))
        try CommandOutput.confirm("\(name) is deleted")
    }

    private static func isConfirmed(_ name: String) throws -> Bool {
        guard isatty(STDIN_FILENO) == 1 else {
            throw Report.failure("without a terminal, --yes is needed to delete \(name)")
        }
        let prompt = "Delete \(name) and all its data? Type the name to continue: "
        try? FileHandle.standardError.write(contentsOf: Data(prompt.utf8))
        return readLine() == name
    }
}
