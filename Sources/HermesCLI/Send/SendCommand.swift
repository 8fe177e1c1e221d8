// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The command `hermes send`. It sends one message and ends.
struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send a message and end once it is committed.",
        discussion: """
            Prints the message's id. The password comes from HERMES_PASSWORD, --password-file or the terminal. The \
            login is kept, so that the next start needs no password. Incoming messages are not shown. They are \
            acknowledged only for this command's own device, so the other devices of the account still get them.

            Examples:
              hermes send --from ann --to bob "The build is done"
              make 2>&1 | tail -1 | hermes send --from ann --to bob -
            """
    )

    @Option(help: ArgumentHelp("The sender's account.", valueName: "name"))
    var from: String

    @Option(help: ArgumentHelp("The recipient's account.", valueName: "name"))
    var to: String

    @Option(help: ArgumentHelp("Make repetition safe: a message with the same id is sent only once.", valueName: "id"))
    var clientID: String?

    @Option(help: ArgumentHelp("Give up after this many seconds.", valueName: "seconds"))
    var timeout: Double = 30

    @Argument(help: ArgumentHelp("The text; - reads stdin to its end.", valueName: "text"))
    var text: String

    @OptionGroup(title: "Login") var login: LoginOptions
    @OptionGroup(title: "Server") var server: ServerOptions

    func validate() throws {
        guard (0.001...1e6).contains(timeout) else {
            throw ValidationError("--timeout \(timeout): must be 0.001 to 1000000")
        }
        if let clientID, !(1...64).contains(clientID.utf8.count) {
            throw ValidationError("--client-id must have 1 to 64 bytes")
        }
    }

    func run() async throws {
        let address = server.address(defaultPort: 9000)
        try await reportingFailures(server: address) {
            let text = self.text == "-" ? try Self.readInput() : self.text
            guard !text.isEmpty else { throw Self.emptyText(isInput: self.text == "-") }
            let login = Login(name: from, server: address, options: login, deviceSuffix: "-send")
            let device = login.device
            let client = try login.makeClient(reconnect: .never, device: device)
            let id: String
            do {
                id = try await deliver(text, client) { try await login.logIn(client, device: device) }
            } catch {
                await client.close()
                throw error
            }
            await client.close()
            try CommandOutput.print(id, after: "the message was sent; its id is \(id)")
        }
    }

    private func deliver(
        _ text: String,
        _ client: HermesClient,
        _ logIn: @escaping @Sendable () async throws -> Session
    ) async throws -> String {
        let to = to
        let clientID = clientID
        let timeout = timeout
        return try await withThrowingTaskGroup(of: String?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                _ = try await logIn()
                let peer: Account
                do {
                    peer = try await client.account(named: to)
                } catch let error as HermesClientError where error.code == .notFound {
                    throw ClientFailure("there is no account \(to); it has to be registered first")
                }
                let receipt = try await client.sendDirectly(.text(text), to: .user(peer.uid), clientID: clientID)
                return receipt.messageID.rawValue
            }
            group.addTask {
                for await _ in client.events {}
                return nil
            }
            group.addTask {
                try await Task.sleep(for: .seconds(timeout))
                throw ClientFailure("no receipt within \(timeout) s; to try again safely, use the same --client-id")
            }
            while let id = try await group.next() {
                if let id { return id }
            }
            throw ClientFailure("not sent")
        }
    }

    /// Returns the failure of a text without characters. The server would deliver such a message, but it is most likely
    /// the result of a script that has failed.
    static func emptyText(isInput: Bool) -> ClientFailure {
        let message =
            isInput
            ? "stdin has no text, so nothing was sent; check the command whose output is to be sent"
            : "the text is empty, so nothing was sent; give at least one character, or - to read stdin"
        return ClientFailure(message, exitCode: .validationFailure)
    }

    private static func readInput() throws -> String {
        let data = FileHandle.standardInput.readDataToEndOfFile()
        guard data.count <= 65_536, let text = String(data: data, encoding: .utf8) else {
            throw ClientFailure("stdin is not UTF-8, or is longer than 64 KiB", exitCode: .validationFailure)
        }
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }
}
