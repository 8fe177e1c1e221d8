// Hermes
// SPDX-License-Identifier: Apache-2.0

/// All problems of a configuration, reported together so that they can be fixed together.
package struct SettingsError: Error, Sendable, CustomStringConvertible {
    /// The problems, one sentence each, with the key, the value, and the allowed values.
    package let problems: [String]

    package init(problems: [String]) { self.problems = problems }

    package var description: String {
        problems.count == 1 ? problems[0] : problems.map { "- \($0)" }.joined(separator: "\n")
    }
}

extension SettingsError {
    /// Returns the word that is most similar to `word`; nil if none is similar enough.
    ///
    /// - Parameter maxDistance: the number of letters that may differ; nil for a third of the letters, but at least
    ///   2.
    package static func nearest(
        to word: String,
        among words: some Sequence<String>,
        maxDistance: Int? = nil
    ) -> String? {
        let typed = Array(word.lowercased())
        var best: (word: String, distance: Int)?
        for candidate in words {
            let distance = editDistance(typed, Array(candidate.lowercased()))
            if distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        guard let best, best.distance <= maxDistance ?? max(2, typed.count / 3) else { return nil }
        return best.word
    }

    /// Returns the Levenshtein distance between two texts.
    private static func editDistance(_ from: [Character], _ to: [Character]) -> Int {
        var previous = Array(0...to.count)
        for (row, letter) in from.enumerated() {
            var current = [row + 1]
            for (column, other) in to.enumerated() {
                let changed = previous[column] + (letter == other ? 0 : 1)
                current.append(min(changed, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[to.count]
    }
}
