// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Start the server.",
        usage: "hermes serve [--config <file>] [--data <directory>] [<setting> ...]",
        discussion: """
            Needs no configuration: data goes to ./hermes-data, and all listeners are on 127.0.0.1. SIGTERM and SIGINT \
            stop the server: it notifies its clients, commits everything, and ends with exit code 0. On SIGHUP, it \
            reads certificates, revocation lists, topic rules, token keys and push keys again. Settings are read only \
            at the start.

            Any setting can be given as --KEY VALUE, or as HERMES_KEY in the environment; hermes check-config \
            --print-annotated prints all of them.

            Examples:
              hermes serve
              hermes serve --config hermes.yaml
              hermes serve --data /var/lib/hermes --listeners.delimited.host 0.0.0.0
              HERMES_LISTENERS_HTTP_PORT=8888 hermes serve --log.level debug
            """
    )

    @Option(name: .long, help: ArgumentHelp("A configuration file.", valueName: "file"))
    var config: String?

    @Option(name: .long, help: ArgumentHelp("The data directory; short for --data.directory.", valueName: "directory"))
    var data: [String] = []

    @Argument(parsing: .allUnrecognized, help: ArgumentHelp("Settings, as --KEY VALUE.", valueName: "setting"))
    var settings: [String] = []

    func validate() throws { try SettingArguments.check(settings, data: data) }

    func run() async throws {
        Allocator.returnLargeBlocks()
        do throws(ServerFailure) {
            try await HermesServer.run(arguments: SettingArguments.all(settings, data: data), file: config)
        } catch {
            throw Report.failure(error)
        }
    }
}
