// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes clients`.
struct ClientsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients",
        abstract: "List the connected MQTT clients, or disconnect one.",
        discussion: """
            Asks the running server.

            Examples:
              hermes clients
              hermes clients list --text lamp
              hermes clients disconnect 17
            """,
        subcommands: [ClientsList.self, ClientsDisconnect.self],
        defaultSubcommand: ClientsList.self
    )
}

struct ClientsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract:
            "List clients: number, client id, owner, version, listener, address, time of the connection, subscriptions, queued.",
        discussion: """
            An anonymous client has the owner "-".

            Examples:
              hermes clients list
              hermes clients list --text lamp --json
            """
    )

    private static let pageSize = 1_000

    @Option(
        help: ArgumentHelp(
            "List only clients whose id or owner contains this text; case is ignored.",
            valueName: "text"
        )
    )
    var text: String = ""

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let administrator = Administrator(data)
        var all: [ControlMQTTClient] = []
        var after: UInt64 = 0
        while true {
            let request = ControlRequest.listClients(after: after, text: text, limit: Self.pageSize)
            guard case .clients(let page) = try await administrator.ask(request) else { return }
            all += json ? page : []
            for client in page where !json { try CommandOutput.print(ViewFormat.text(client)) }
            guard page.count == Self.pageSize, let last = page.last else { break }
            after = last.number
        }
        if json { try CommandOutput.print(ViewFormat.json(all)) }
    }
}

struct ClientsDisconnect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disconnect",
        abstract: "End a client's connection.",
        discussion: """
            The client keeps its session and can reconnect. Over MQTT 5.0, it gets the reason.

            Example: hermes clients disconnect 17
            """
    )

    @Argument(help: "The number that \"hermes clients\" shows.")
    var number: UInt64

    @OptionGroup var data: DataOptions

    func run() async throws {
        let response = try await Administrator(data).ask(.disconnectClient(number: number))
        guard case .disconnected(let clientID) = response else { return }
        try CommandOutput.confirm("disconnected \(ViewFormat.printable(clientID))")
    }
}

extension ViewFormat {
    /// Returns a line with tabs between the columns.
    static func text(_ client: ControlMQTTClient) -> String {
        let columns = [
            "\(client.number)", client.clientID, client.owner.isEmpty ? "-" : client.owner, client.version,
            client.listener, client.address, moment(client.since), "\(client.subscriptions)", "\(client.queued)",
        ]
        return line(columns)
    }
}
