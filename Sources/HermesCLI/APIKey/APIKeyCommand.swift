// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes apikey`.
struct APIKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apikey",
        abstract: "Manage the keys of the HTTP API.",
        discussion: """
            Works with or without a running server. A key is shown once, when it is created; the server stores only \
            its hash. A revoked key stops working at once.

            Examples:
              hermes apikey create shop --scopes push,users:read
              hermes apikey list
              hermes apikey revoke shop
            """,
        subcommands: [APIKeyCreate.self, APIKeyList.self, APIKeyRevoke.self]
    )
}

struct APIKeyCreate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a key and print it.",
        discussion: """
            Scopes: push, users:read, users:write, tokens:write, messages:read, messages:write, rooms:read, \
            rooms:write, topics:read, topics:write, stats:read, events:read, clients:read, clients:write, trace:read, \
            audit:read; or all.

            Example: hermes apikey create shop --scopes push,users:read > shop.key
            """
    )

    @Argument(help: "The key's name; must be unique.")
    var name: String

    @Option(help: ArgumentHelp("The key's scopes, separated by commas.", valueName: "scopes"))
    var scopes: String = "push"

    @OptionGroup var data: DataOptions

    func run() async throws {
        let response = try await Administrator(data).ask(.createAPIKey(name: name, scopes: scopes))
        guard case .apiKeyCreated(let secret) = response else { return }
        try CommandOutput.print(
            secret,
            after: "the key \(name) was created but may not have been printed; if you do not have it, "
                + "revoke it with \"hermes apikey revoke \(name)\(data.shown)\""
        )
    }
}

struct APIKeyList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List all keys: name, scopes, day of creation, day of last use.",
        discussion: "Example: hermes apikey list"
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard case .apiKeys(let keys) = try await Administrator(data).ask(.listAPIKeys) else { return }
        for key in keys {
            let used = key.lastUsedAt.map { "used \(Day.text($0))" } ?? "never used"
            try CommandOutput.print(ViewFormat.line([key.name, "\(key.scopes)", Day.text(key.createdAt), used]))
        }
    }
}

struct APIKeyRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a key at once.",
        discussion: "Example: hermes apikey revoke shop"
    )

    @Argument(help: "The key's name.")
    var name: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        _ = try await Administrator(data).ask(.revokeAPIKey(name: name))
        try CommandOutput.confirm("\(name) is revoked")
    }
}
