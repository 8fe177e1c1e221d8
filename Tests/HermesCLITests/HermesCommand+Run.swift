// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Testing

@testable import HermesCLI

extension HermesCommand {
    /// Runs a command in this process.
    static func run(_ arguments: [String]) async throws {
        guard var command = try parseAsRoot(arguments) as? any AsyncParsableCommand else {
            Issue.record("\(arguments) is no command")
            return
        }
        try await command.run()
    }
}
