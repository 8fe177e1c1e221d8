// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The command `hermes chat`. It sends and shows messages in a terminal or in a script.
struct ChatCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat",
        abstract: "Chat with another user, in a terminal or over a pipe.",
        discussion: """
            Your input is sent when you press Enter; incoming messages appear above the input line. Lines that begin \
            with / are commands; /help lists them. The login is kept in ~/.config/hermes, readable only by you, so \
            that the next start needs no password. The client reconnects by itself; no message is lost or shown \
            twice. Messages that could not be printed, or that the reader of a pipe did not read, are shown at the \
            next start.

            On a pipe, the lines of stdin are sent in order, and the program ends once the server has stored all of \
            them.

            Examples:
              hermes chat ann --register                  create the account "ann" and start
              hermes chat ann --to bob                    talk to bob
              hermes chat ann --to bob < letter.txt       send a file, line by line
              hermes chat bob --count 3 < /dev/null       print the next three messages or pushes, then end
              hermes chat ann --host chat.example --tls   over the internet
            """
    )

    @Argument(help: ArgumentHelp("Your name.", valueName: "name"))
    var name: String

    @Option(help: ArgumentHelp("The account to talk to.", valueName: "peer"))
    var to: String?

    @Option(help: ArgumentHelp("After the end of stdin, wait this long for incoming messages.", valueName: "seconds"))
    var wait: Double?

    @Option(help: ArgumentHelp("End after this many pushes and messages from others.", valueName: "n"))
    var count: Int?

    @OptionGroup(title: "Login") var login: LoginOptions
    @OptionGroup(title: "Server") var server: ServerOptions

    func validate() throws {
        if let wait, !(0...1e9).contains(wait) { throw ValidationError("--wait \(wait): must be 0 to 1000000000") }
        if let count, count < 1 { throw ValidationError("--count \(count): must be at least 1") }
    }

    func run() async throws {
        let address = server.address(defaultPort: 9000)
        try await reportingFailures(server: address) {
            let login = Login(name: name, server: address, options: login)
            let device = login.device
            let isInteractive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
            let client = try login.makeClient(reconnect: .interactive, device: device)
            let chat = Chat(
                client: client,
                console: Console(isInteractive: isInteractive),
                name: name,
                place: "\(address.host):\(address.port)",
                limit: count
            )
            do {
                try await chat.run(firstPeer: to, wait: wait) { try await login.logIn(client, device: device) }
            } catch {
                await client.close(takingLastEvent: chat.progress.isComplete)
                throw error
            }
            await client.close(takingLastEvent: chat.progress.isComplete)
        }
    }
}
