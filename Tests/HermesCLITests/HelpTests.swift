// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Testing

@testable import HermesCLI

struct HelpTests {
    private static func all(_ command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        [command] + command.configuration.subcommands.flatMap(all)
    }

    @Test func `an audit log of no entries is refused`() throws {
        for limit in ["0", "1001", "-1"] {
            #expect(throws: (any Error).self) { try HermesCommand.parseAsRoot(["admin", "audit", "--limit=\(limit)"]) }
        }
        _ = try HermesCommand.parseAsRoot(["admin", "audit", "--limit", "1"])
    }

    @Test func `each paragraph is one line, which the terminal's width breaks`() {
        let commands = Self.all(HermesCommand.self)
        #expect(commands.count > 40)
        for command in commands {
            let lines = command.configuration.discussion.split(separator: "\n", omittingEmptySubsequences: false)
            for (line, next) in zip(lines, lines.dropFirst()) where !line.isEmpty && !next.isEmpty {
                let isBroken = line.first != " " && next.first != " " && line.last != ":"
                #expect(!isBroken, "\(command): \(line)")
            }
        }
    }
}
