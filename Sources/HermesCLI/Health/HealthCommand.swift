// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes health`.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Ask the server of this machine whether it is ready.",
        usage: "hermes health [--config <file>] [--data <directory>] [<setting> ...]",
        discussion: """
            Asks the HTTP port of the configuration for /readyz, and prints the answer. The certificate of the port is \
            not checked.

            Exit codes: 0 if the server is ready; 1 if it is not ready, and the reason is printed; 69 if it does not \
            answer within 10 s; 78 if the configuration is wrong or has no usable HTTP port.

            Examples:
              hermes health
              hermes health --config /etc/hermes/hermes.yaml
            """
    )

    private static let limit = Duration.seconds(10)

    @Option(name: .long, help: ArgumentHelp("The configuration file of the server.", valueName: "file"))
    var config: String?

    @Option(name: .long, help: ArgumentHelp("The data directory; short for --data.directory.", valueName: "directory"))
    var data: [String] = []

    @Argument(parsing: .allUnrecognized, help: ArgumentHelp("Settings, as --KEY VALUE.", valueName: "setting"))
    var settings: [String] = []

    func validate() throws { try SettingArguments.check(settings, data: data) }

    func run() async throws {
        let address: String
        do throws(ServerFailure) {
            let arguments = SettingArguments.all(settings, data: data)
            address = try HermesServer.httpAddress(arguments: arguments, file: config)
        } catch {
            throw Report.failure(error)
        }
        let answer: HTTPEndpoint.Answer
        do throws(ClientFailure) {
            answer = try await HTTPEndpoint(address, path: "/readyz", checksCertificate: false).get(within: Self.limit)
        } catch {
            throw Report.failure("no server answers at \(address)", code: 69)
        }
        let body = String(decoding: answer.body, as: UTF8.self)
        let text = body.trimmingCharacters(in: .whitespacesAndNewlines).printable
        if answer.status == 429 {
            throw Report.failure("\(address) refuses the question: \(text) (429); the server may be ready", code: 69)
        }
        guard answer.status == 200 else { throw Report.failure("\(address): \(text)") }
        try CommandOutput.print(text)
    }
}
