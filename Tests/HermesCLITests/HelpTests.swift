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

    @Test(arguments: [
        (["publish", "--help"], "hermes pub"), (["help", "subscribe"], "hermes sub"), (["users"], "hermes user"),
        (["serv"], "hermes serve"), (["user", "lst"], "hermes user list"), (["xylophone"], "hermes --help"),
        (["help", "user", "xylophone"], "hermes user --help"),
    ])
    func `an unknown command is refused with a hint`(arguments: [String], hint: String) throws {
        let problem = try #require(CommandNames.problem(in: arguments, of: HermesCommand.self))
        #expect(problem.contains("\"\(hint)\""), "\(problem)")
    }

    @Test(arguments: [
        [], ["--help"], ["--version"], ["help"], ["help", "pub"], ["help", "user", "add"], ["help", "help"],
        ["pub", "--help"], ["user", "add", "ann"], ["clients"], ["clients", "--json"], ["serve", "--log.level", "x"],
        ["admin", "passwd", "ann"],
    ])
    func `known commands are left to the parser`(arguments: [String]) {
        #expect(CommandNames.problem(in: arguments, of: HermesCommand.self) == nil)
    }

    @Test(arguments: ["serve", "health", "check-config"])
    func `a word that belongs to no setting is a wrong command line, and --data is data.directory`(
        command: String
    ) throws {
        for words in [
            ["foo"], ["--log.level", "debug", "foo"], ["--log.level=debug", "foo"],
            ["--data", "a", "--data.directory", "b"],
        ] {
            let error = #expect(throws: (any Error).self) { try HermesCommand.parseAsRoot([command] + words) }
            #expect(error.map { HermesCommand.exitCode(for: $0) } == .validationFailure, "\(words)")
        }
        let words = ["--data", "a", "--log.level", "debug"]
        _ = try HermesCommand.parseAsRoot([command] + words)
        let serve = try Serve.parse(words)
        let all = ["--data.directory", "a", "--log.level", "debug"]
        #expect(SettingArguments.all(serve.settings, data: serve.data) == all)
    }

    @Test func `several kinds of recipients are not called none`() throws {
        let cases: [(words: [String], reason: String)] = [
            (["--to", "ann", "--room", "lobby"], "more than one kind"), ([], "are missing"),
        ]
        for (words, reason) in cases {
            let thrown = #expect(throws: (any Error).self) { try PushCommand.parse(words + ["--body", "x"]) }
            let error = try #require(thrown)
            #expect(PushCommand.message(for: error).contains(reason))
        }
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
