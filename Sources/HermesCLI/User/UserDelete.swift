// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

struct UserDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete an account and all it has; there is no way back.",
        discussion: """
            Deletes its devices, tokens, inbox, contacts, memberships of groups and MQTT sessions, and ends its connections. A
            group it owned goes to an administrator, or else to a member. Its name is free then; what others have of its
            messages stays. To lock somebody out for a while, use "hermes user disable".

            Examples:
              hermes user delete ben
              hermes user delete ben --yes
            """
    )

    @Argument(help: "The name.")
    var name: String

    @Flag(name: .long, help: "Do not ask; needed where there is no terminal to ask on.")
    var yes = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard try yes || Self.isConfirmed(name) else { throw Report.failure("nothing was deleted") }
        _ = try await Administrator(data).ask(.deleteUser(nickName: name))
        print("\(name) is deleted")
    }

    private static func isConfirmed(_ name: String) throws -> Bool {
        guard isatty(STDIN_FILENO) == 1 else {
            throw Report.failure("there is no terminal to ask on; say --yes to delete \(name)")
        }
        let prompt = "Delete \(name) and all it has? Type the name to go on: "
        try? FileHandle.standardError.write(contentsOf: Data(prompt.utf8))
        return readLine() == name
    }
}
