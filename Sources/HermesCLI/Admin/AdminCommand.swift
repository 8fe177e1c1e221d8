// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes admin`.
struct AdminCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin",
        abstract: "Manage the administrators of the console.",
        discussion: """
            Works with or without a running server. Passwords come from a prompt, standard input or a file. They never \
            come from the command line, where other users could see them. Every change ends the sessions of the \
            administrator.

            Roles: a viewer sees figures, accounts, groups, rooms and invitations, and changes nothing. An operator \
            also sees the configuration, the logs, the names of API keys, MQTT clients and traces, and acts on rooms, \
            topics, devices and sessions. An administrator also creates and deletes accounts, keys and invitations.

            Examples:
              hermes admin add olga --role administrator
              hermes admin totp olga
              hermes admin list
              hermes admin audit
            """,
        subcommands: [
            AdminAdd.self, AdminList.self, AdminPassword.self, AdminRole.self, AdminTOTP.self, AdminRemove.self,
            AdminAudit.self,
        ]
    )
}

struct AdminAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Create an administrator.",
        discussion: "Example: hermes admin add olga --role administrator"
    )

    @Argument(help: "The name: letters, digits, '.', '_', '-' or '@'.")
    var name: String

    @Option(help: "The role: viewer, operator or administrator.")
    var role: String

    @OptionGroup var password: PasswordOptions
    @OptionGroup var data: DataOptions

    func run() async throws {
        let secret = try PasswordInput.read(file: password.passwordFile, isNew: true)
        let request = ControlRequest.addAdministrator(name: name, role: role, password: secret)
        guard case .administrators(let made) = try await Administrator(data).ask(request), let made = made.first else {
            return
        }
        try CommandOutput.confirm("created \(made.name), \(made.role)")
    }
}

struct AdminList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List all administrators: name, role, second factor, day of creation, day of the last login.",
        discussion: "Example: hermes admin list"
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard case .administrators(let all) = try await Administrator(data).ask(.listAdministrators) else { return }
        for one in all {
            let factor = one.hasSecondFactor ? "second factor" : "password alone"
            let login = one.lastLoginAt.map { "logged in \(Day.text($0))" } ?? "never logged in"
            try CommandOutput.print(ViewFormat.line([one.name, one.role, factor, Day.text(one.createdAt), login]))
        }
    }
}

struct AdminPassword: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "password",
        abstract: "Set a new password.",
        discussion: "Example: hermes admin password olga",
        aliases: ["passwd"]
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var password: PasswordOptions
    @OptionGroup var data: DataOptions

    func run() async throws {
        let secret = try PasswordInput.read(file: password.passwordFile, isNew: true)
        _ = try await Administrator(data).ask(.setAdministratorPassword(name: name, password: secret))
        try CommandOutput.confirm("\(name) has a new password")
    }
}

struct AdminRole: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role",
        abstract: "Change what an administrator may do.",
        discussion: "Example: hermes admin role olga viewer"
    )

    @Argument(help: "The name.")
    var name: String

    @Argument(help: "The role: viewer, operator or administrator.")
    var role: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.setAdministratorRole(name: name, role: role))
        try CommandOutput.confirm("\(name) is \(role)")
    }
}

struct AdminTOTP: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "totp",
        abstract: "Give an administrator a second factor, or take it away.",
        discussion: """
            Prints a secret for an authenticator app (TOTP, RFC 6238), and recovery codes. If the app is lost, each \
            recovery code can be used once in its place. The secret and the codes are not shown again. From now on, \
            each login needs a code. An earlier secret is no longer valid.

            Examples:
              hermes admin totp olga
              hermes admin totp olga --off
            """
    )

    @Argument(help: "The name.")
    var name: String

    @Flag(name: .long, help: "Take the second factor away.")
    var off = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let request = off ? ControlRequest.removeSecondFactor(name: name) : .newSecondFactor(name: name)
        switch try await Administrator(data).ask(request) {
        case .secondFactor(let address, let secret, let recovery):
            let lines = [
                "\(address)\n", "secret, to type into an app: \(secret)\n", "recovery codes, each valid once:",
            ]
            try CommandOutput.print(
                (lines + recovery.map { "  \($0)" }).joined(separator: "\n"),
                after: "the second factor of \(name) was created but may not have been printed; if you do not have it, "
                    + "take it away with \"hermes admin totp \(name) --off\(data.shown)\""
            )
        default: try CommandOutput.confirm("\(name) logs in with the password alone")
        }
    }
}

struct AdminRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove an administrator at once.",
        discussion: "Example: hermes admin remove olga"
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.removeAdministrator(name: name))
        try CommandOutput.confirm("\(name) is removed")
    }
}

struct AdminAudit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show what administrators did: time, name, address, action, object, result; the newest first.",
        discussion: "Example: hermes admin audit --limit 20"
    )

    @Option(help: "The number of entries, 1 to 1,000.")
    var limit: Int = 100

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard (1...1000).contains(limit) else { throw ValidationError("--limit must be 1 to 1000") }
    }

    func run() async throws {
        let request = ControlRequest.auditLog(before: nil, limit: limit)
        guard case .auditEntries(let entries) = try await Administrator(data).ask(request) else { return }
        for entry in entries {
            let time = Date(timeIntervalSince1970: Double(entry.time) / 1000).formatted(.iso8601)
            let columns = [time, entry.who, entry.address, entry.action, entry.target, entry.result]
            // The entries include the names from failed logins, which anybody can choose.
            try CommandOutput.print(ViewFormat.line(columns))
        }
    }
}
