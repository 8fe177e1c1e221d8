// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The root of the command line: `hermes <subcommand>`.
@main
struct HermesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hermes",
        abstract: "A messaging server and its clients.",
        discussion: """
            Examples:
              hermes serve                 start the server with every default
              hermes chat ann --register   chat; in a second terminal: hermes chat bob --register --to ann
              hermes room lobby            join a room
              hermes sub -t 'home/#' -v    subscribe over MQTT; in a second terminal: hermes pub -t home/a -m hello
            """,
        version: HermesVersion.current,
        groupedSubcommands: [
            CommandGroup(name: "Server", subcommands: serverCommands),
            CommandGroup(name: "Client", subcommands: clientCommands),
        ].filter { !$0.subcommands.isEmpty }
    )

    private static let serverCommands: [any ParsableCommand.Type] = [
        Serve.self, CheckConfig.self, User.self, APIKeyCommand.self, InvitationCommand.self,
        AdminCommand.self, ClientsCommand.self, StatsCommand.self, FiguresCommand.self, TraceCommand.self, Backup.self,
        Restore.self, HealthCommand.self,
    ]

    private static let clientCommands: [any ParsableCommand.Type] = [
        ChatCommand.self, SendCommand.self, PushCommand.self, RoomCommand.self, QSIOPCommand.self, PubCommand.self,
        SubCommand.self,
    ]

    /// Refuses unknown commands and joins the words of multi-word options, then parses as usual.
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let problem = CommandNames.problem(in: arguments, of: HermesCommand.self) {
            StandardError.write(problem.fullMessage(root: HermesCommand.self) + "\n")
            exit(withError: ExitCode.validationFailure)
        }
        await main(MQTTPropertyArguments.joined(arguments))
    }
}
