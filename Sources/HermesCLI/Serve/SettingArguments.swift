// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The settings of a command line: `--KEY VALUE` or `--KEY=VALUE`, and `--data` for `data.directory`.
enum SettingArguments {
    private static let directory = "--data.directory"

    /// Returns the settings together with the data directory.
    static func all(_ settings: [String], data: [String]) -> [String] {
        data.flatMap { [directory, $0] } + settings
    }

    /// Checks that every word belongs to a setting, and that the data directory is given only once. The keys and the
    /// values are checked later, together with the other sources of the configuration.
    ///
    /// - Parameter data: the values of `--data`.
    static func check(_ settings: [String], data: [String]) throws(ValidationError) {
        if data.count > 1 { throw ValidationError("--data is given more than once: give it only once") }
        var rest = settings[...]
        while let word = rest.popFirst() {
            // The argument parser passes on the word "--", too.
            guard word.hasPrefix("--"), word != "--" else {
                throw ValidationError("\"\(word)\" is not understood; give a setting as --KEY VALUE")
            }
            if !data.isEmpty, word == directory || word.hasPrefix("\(directory)=") {
                throw ValidationError("--data and \(directory) are the same setting: give only one of them")
            }
            if !word.contains("="), let next = rest.first, !next.hasPrefix("--") { rest.removeFirst() }
        }
    }
}
