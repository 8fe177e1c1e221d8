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
        (["help", "user", "xylophone"], "hermes user --help"), (["foo"], "hermes --help"), (["rom"], "hermes room"),
        (["subscirbe"], "hermes sub"), (["helth"], "hermes health"), (["user", ""], "hermes user --help"),
    ])
    func `an unknown command is refused with a hint`(arguments: [String], hint: String) throws {
        let problem = try #require(CommandNames.problem(in: arguments, of: HermesCommand.self))
        #expect(problem.message.contains("\"\(hint)\""), "\(problem.message)")
    }

    @Test func `an empty word for a command is told in words`() throws {
        let problem = try #require(CommandNames.problem(in: [""], of: HermesCommand.self))
        #expect(problem.message.hasPrefix(#"the word after "hermes" is empty"#), "\(problem.message)")
    }

    @Test(arguments: [
        (["foo"], "hermes"), (["user", "foo"], "hermes user"), (["help", "user", "foo"], "hermes user"),
    ])
    func `an unknown command is refused with the usage of the command before it`(words: [String], path: String) throws {
        let problem = try #require(CommandNames.problem(in: words, of: HermesCommand.self))
        let lines = problem.fullMessage(root: HermesCommand.self).split(separator: "\n")
        #expect(
            lines == [
                "Error: there is no command \"\(path) foo\"; \"\(path) --help\" lists the commands",
                "Usage: \(path) <subcommand>", "  See '\(path) --help' for more information.",
            ]
        )
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
            ["--data", "a", "--data.directory", "b"], ["--data", "a", "--data", "b"], ["--data=a", "--data", "a"],
            ["--", "foo"], ["--log.level", "debug", "--", "foo"],
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
