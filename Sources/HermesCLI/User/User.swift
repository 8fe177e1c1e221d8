// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes user`.
struct User: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Manage accounts and their devices.",
        discussion: """
            Works with or without a running server. Passwords come from a prompt, standard input or a file. They never \
            come from the command line, where other users could see them.

            Examples:
              hermes user add anna
              hermes user add ben --password-file ben.txt
              echo "new secret" | hermes user password anna
              hermes user list
              hermes user devices anna --remove old-phone
              hermes user conversations anna --unread
              hermes user disable ben
              hermes user delete ben --yes
            """,
        subcommands: [
            UserAdd.self, UserList.self, UserPassword.self, UserDisable.self, UserEnable.self, UserDelete.self,
            UserDevices.self, UserConversations.self,
        ]
    )
}

/// The data directory to use.
struct DataOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("The configuration file of the server.", valueName: "file"))
    var config: String?

    @Option(
        name: .long,
        help: ArgumentHelp("The data directory; overrides the configuration.", valueName: "directory")
    )
    var data: String?

    /// The given options, for a command that is shown to the user. They are words for a POSIX shell, each with a space
    /// before it.
    var shown: String {
        var text = ""
        for case (let name, let value?) in [("--config", config), ("--data", data)] {
            text += " \(name) '\(value.replacing("'", with: "'\\''"))'"
        }
        return text
    }
}

/// The source of a password.
struct PasswordOptions: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("Read the password from this file.", valueName: "file"))
    var passwordFile: String?
}

struct UserAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Create an account, regardless of accounts.registration.",
        discussion: "Example: hermes user add anna"
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var password: PasswordOptions
    @OptionGroup var data: DataOptions

    func run() async throws {
        let secret = try PasswordInput.read(file: password.passwordFile, isNew: true)
        let response = try await Administrator(data).ask(.addUser(nickName: name, password: secret))
        guard case .users(let users) = response, let user = users.first else { return }
        try CommandOutput.confirm("created \(user.nickName) with user id \(user.id)")
    }
}

struct UserList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List all accounts: id, name, state, day of creation.",
        discussion: "Example: hermes user list"
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let administrator = Administrator(data)
        var after: Int32 = 0
        while case .users(let users) = try await administrator.ask(.listUsers(after: after)), let last = users.last {
            for user in users {
                let state = user.isDisabled ? "disabled" : user.isOnline ? "online" : "offline"
                let line = ViewFormat.line(["\(user.id)", user.nickName, state, Day.text(user.createdAt)])
                try CommandOutput.print(line)
            }
            after = last.id
        }
    }
}

struct UserPassword: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "password",
        abstract: "Set a new password; this ends all connections of the account.",
        discussion: "Example: hermes user password anna"
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var password: PasswordOptions
    @OptionGroup var data: DataOptions

    func run() async throws {
        let secret = try PasswordInput.read(file: password.passwordFile, isNew: true)
        _ = try await Administrator(data).ask(.setPassword(nickName: name, password: secret))
        try CommandOutput.confirm("\(name) has a new password")
    }
}

struct UserDisable: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disable",
        abstract: "Disable an account; nothing is deleted.",
        discussion: "Example: hermes user disable ben"
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.setDisabled(nickName: name, isDisabled: true))
        try CommandOutput.confirm("\(name) is disabled")
    }
}

struct UserEnable: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enable",
        abstract: "Enable a disabled account.",
        discussion: "Example: hermes user enable ben"
    )

    @Argument(help: "The name.")
    var name: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.setDisabled(nickName: name, isDisabled: false))
        try CommandOutput.confirm("\(name) is enabled")
    }
}

struct UserDevices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the devices of an account, or remove one.",
        discussion: """
            Within the inbox's limits, the server stores an entry until all devices of the account have it. So remove \
            devices that will not return.

            Examples:
              hermes user devices anna
              hermes user devices anna --remove old-phone
            """
    )

    @Argument(help: "The name.")
    var name: String

    @Option(name: .long, help: ArgumentHelp("Remove this device and its tokens.", valueName: "device"))
    var remove: String?

    @OptionGroup var data: DataOptions

    func run() async throws {
        let administrator = Administrator(data)
        if let remove {
            _ = try await administrator.ask(.removeDevice(nickName: name, device: remove))
            try CommandOutput.confirm("removed \(remove)")
            return
        }
        guard case .devices(let devices) = try await administrator.ask(.listDevices(nickName: name)) else { return }
        for device in devices {
            let state = device.isOnline ? "online" : "last seen \(Day.text(device.lastSeenAt))"
            let about = [device.name, device.platform].filter { !$0.isEmpty }.joined(separator: ", ")
            let line = ViewFormat.line([device.id, state, "received up to entry \(device.cursor)", about])
            try CommandOutput.print(line)
        }
    }
}
