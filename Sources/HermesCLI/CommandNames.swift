// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// Checks the names of commands before the argument parser reads them. For an unknown name followed by `--help`, the
/// parser would print the help of the root.
enum CommandNames {
    /// A word that does not name a command.
    struct Problem {
        let message: String
        /// The command that has no such subcommand.
        let command: any ParsableCommand.Type
        /// The words that name this command, beginning with the name of the program.
        let path: String

        /// Returns the message with the usage of the command, as the argument parser writes it.
        ///
        /// - Parameter root: the root of the command line.
        func fullMessage(root: any ParsableCommand.Type) -> String {
            """
            Error: \(message)
            Usage: \(root.usageString(for: command))
              See '\(path) --help' for more information.
            """
        }
    }

    /// Returns the problem with the name of a command; nil if there is none.
    ///
    /// - Parameter arguments: the words after the name of the program.
    static func problem(in arguments: [String], of root: any ParsableCommand.Type) -> Problem? {
        var command = root
        var path = root._commandName
        var rest = arguments[...]
        // `hermes help user add` asks for the help of `hermes user add`.
        if rest.first == "help" {
            rest.removeFirst()
            if rest.first == "help" { return nil }
        }
        while let word = rest.popFirst(), !word.hasPrefix("-") {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, command.configuration.defaultSubcommand == nil else { return nil }
            guard let next = subcommands.first(where: { names(of: $0).contains(word) }) else {
                let problem =
                    word.isEmpty
                    ? "the word after \"\(path)\" is empty, but must name a command"
                    : "there is no command \"\(path) \(word)\""
                let hint =
                    nearest(to: word, among: subcommands.flatMap(names)).map { "did you mean \"\(path) \($0)\"?" }
                    ?? "\"\(path) --help\" lists the commands"
                return Problem(message: "\(problem); \(hint)", command: command, path: path)
            }
            command = next
            path += " \(word)"
        }
        return nil
    }

    private static func names(of command: any ParsableCommand.Type) -> [String] {
        [command._commandName] + command.configuration.aliases
    }

    /// Returns the command that a word probably means; nil if there is no such command. The word may begin with the
    /// command's name, as `publish` begins with `pub`. The command's name may begin with the word. Otherwise, the word
    /// and the name may differ in at most half of the word's letters. One letter may always differ.
    private static func nearest(to word: String, among names: [String]) -> String? {
        let longer = names.filter { $0.count >= 3 && word.hasPrefix($0) }
        if let name = longer.max(by: { $0.count < $1.count }) { return name }
        if word.count >= 2, let name = names.first(where: { $0.hasPrefix(word) }) { return name }
        return HermesServer.nearest(to: word, among: names, maxDistance: max(1, word.count / 2))
    }
}
