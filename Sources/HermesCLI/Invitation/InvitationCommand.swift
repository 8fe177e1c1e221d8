// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes invitation`.
struct InvitationCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invitation",
        abstract: "Manage the invitations to register.",
        discussion: """
            If accounts.registration is "invitation", people need an invitation to register. Works with or without a \
            running server. A code is shown once, when it is created; the server stores only its hash.

            Examples:
              hermes invitation create summer-course --uses 30 --days 14
              hermes invitation list
              hermes invitation revoke summer-course
            """,
        subcommands: [InvitationCreate.self, InvitationList.self, InvitationRevoke.self]
    )
}

struct InvitationCreate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create an invitation and print its code.",
        discussion: "Example: hermes invitation create ann --days 7"
    )

    @Argument(help: "The invitation's name; must be unique.")
    var name: String

    @Option(help: "The number of accounts that the invitation can create.")
    var uses: Int = 1

    @Option(help: "The number of days for which the invitation is valid; 0 means no limit.")
    var days: Int = 30

    @OptionGroup var data: DataOptions

    func run() async throws {
        let request = ControlRequest.createInvitation(name: name, uses: uses, days: days)
        guard case .invitationCreated(let code) = try await Administrator(data).ask(request) else { return }
        try CommandOutput.print(
            code,
            after: "the invitation \(name) was created but its code may not have been printed; if you do not have it, "
                + "revoke the invitation with \"hermes invitation revoke \(name)\(data.shown)\""
        )
    }
}

struct InvitationList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List all invitations: name, uses, day of creation, last day.",
        discussion: "Example: hermes invitation list"
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard case .invitations(let list) = try await Administrator(data).ask(.listInvitations) else { return }
        for invitation in list {
            let end = invitation.expiresAt.map { "until \(Day.text($0))" } ?? "no end"
            let uses = "\(invitation.used) of \(invitation.uses) used"
            try CommandOutput.print(ViewFormat.line([invitation.name, uses, Day.text(invitation.createdAt), end]))
        }
    }
}

struct InvitationRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke an invitation. Accounts that were created with it stay.",
        discussion: "Example: hermes invitation revoke summer-course"
    )

    @Argument(help: "The invitation's name.")
    var name: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.revokeInvitation(name: name))
        try CommandOutput.confirm("\(name) is revoked")
    }
}
