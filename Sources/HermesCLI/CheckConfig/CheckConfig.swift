// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes check-config`.
struct CheckConfig: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Check a configuration without starting anything.",
        usage: """
            hermes check-config [--config <file>] [--skip-files] [--show] [--print-annotated] [--print-reference] \
            [--data <directory>] [<setting> ...]
            """,
        discussion: """
            Reads the same sources as hermes serve, and the files that they name: topic rules, keys, certificates. \
            The exit code is 0 if the configuration is valid. Otherwise it is 78, and the reasons are printed.

            Examples:
              hermes check-config --config hermes.yaml
              hermes check-config --show --log.level debug
              hermes check-config --print-annotated > hermes.yaml
            """
    )

    @Option(name: .long, help: ArgumentHelp("A configuration file.", valueName: "file"))
    var config: String?

    @Flag(name: .long, help: "Do not read the files that the configuration names; they may be on another machine.")
    var skipFiles = false

    @Flag(name: .long, help: "Print the values in force and their sources.")
    var show = false

    @Flag(name: .long, help: "Print a file with every setting and its default, and check nothing.")
    var printAnnotated = false

    @Flag(name: .long, help: "Print the reference of all settings as Markdown, and check nothing.")
    var printReference = false

    @Option(name: .long, help: ArgumentHelp("The data directory; short for --data.directory.", valueName: "directory"))
    var data: [String] = []

    @Argument(parsing: .allUnrecognized, help: ArgumentHelp("Settings, as --KEY VALUE.", valueName: "setting"))
    var settings: [String] = []

    func validate() throws { try SettingArguments.check(settings, data: data) }

    func run() async throws {
        if printAnnotated || printReference {
            let text = printAnnotated ? ConfigurationText.annotatedFile() : ConfigurationText.reference()
            return try CommandOutput.print(text, terminator: "")
        }
        let text: String
        do throws(ServerFailure) {
            text = try await HermesServer.checkConfiguration(
                arguments: SettingArguments.all(settings, data: data),
                file: config,
                readsFiles: !skipFiles,
                warn: { Report.note("warning: \($0)") }
            )
        } catch {
            throw Report.failure(error)
        }
        try CommandOutput.print(show ? text : "the configuration is valid\n", terminator: "")
    }
}
