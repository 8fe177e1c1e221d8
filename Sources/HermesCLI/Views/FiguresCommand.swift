// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

/// The command `hermes figures`.
struct FiguresCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "figures",
        abstract:
            "Show figures of a running server over time: an hour in 10 s steps, or 30 days in half-hour steps.",
        discussion: """
            Prints a line for each time. With --month, each value is the mean of half an hour and, after a slash, the \
            maximum. The figures are those of the console; docs/console.md explains them, and "hermes stats" lists \
            them.

            Examples:
              hermes figures memory.resident
              hermes figures frames.in frames.out --month
              hermes figures --month --json
            """
    )

    @Argument(help: "The names of the figures; without names, --json prints all.")
    var names: [String] = []

    @Flag(help: "Show the last 30 days.")
    var month = false

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard json || !names.isEmpty else {
            throw ValidationError("Name the figures to show; \"hermes stats\" lists them. --json shows all.")
        }
    }

    func run() async throws {
        let request = ControlRequest.figureHistory(names: names, isMonth: month)
        guard case .figureHistory(let history) = try await Administrator(data).ask(request) else { return }
        try CommandOutput.print(json ? ViewFormat.json(history) : ViewFormat.text(history))
    }
}

extension ViewFormat {
    /// Returns a table with a line for each time at which at least one of the figures is known.
    static func text(_ history: ControlHistory) -> String {
        var rows = [["time"] + history.figures.map(\.name)]
        for index in 0..<(history.figures.first?.values.count ?? 0) {
            guard history.figures.contains(where: { $0.values[index] != nil }) else { continue }
            let values = history.figures.map { figure in
                let value = number(figure.values[index])
                guard let maxima = figure.maxima else { return value }
                return "\(value) / \(number(maxima[index]))"
            }
            rows.append([moment(history.from + Int64(index) * history.interval)] + values)
        }
        return table(rows, rightAligned: Set(1...max(1, history.figures.count)))
    }
}
