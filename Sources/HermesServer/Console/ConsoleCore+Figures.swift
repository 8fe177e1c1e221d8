// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// The figures over time.
extension ConsoleCore {
    var figuresRoute: ConsoleRoute {
        view(
            "/figures",
            "getFigures",
            "The figures of the last hour, or of 30 days with means and maxima of half an hour.",
            .viewer,
            query: [
                APIRoute.Parameter("span", .choice(["hour", "month"]), "hour if absent."),
                APIRoute.Parameter("after_ms", APICore.time, "Only what is later, in milliseconds since 1970."),
                APIRoute.Parameter(
                    "figure",
                    .array(.string(length: 1...FigureHistory.maxNameBytes), count: 0...FigureHistory.maxFigures),
                    "Only these figures; all if absent."
                ),
            ],
            isPolled: true
        ) { call in
            guard let figures else { return APIAnswer(["figures": .object([])]) }
            return APIAnswer(
                text: Self.document(
                    of: figures.history,
                    isMonth: call.query["span"] == "month",
                    after: call.number("after_ms"),
                    only: call.lists["figure"].map(Set.init)
                )
            )
        }
    }

    /// Written directly: a month has a hundred thousand numbers.
    static func document(of history: FigureHistory, isMonth: Bool, after: Int64?, only: Set<String>?) -> String {
        let rings = isMonth ? [("figures", history.means), ("maxima", history.maxima)] : [("figures", history.recent)]
        let ring = rings[0].1
        let newest = ring.newest ?? 0
        let oldest = max(0, newest - Int64(ring.rows) + 1)
        let first = min(max(oldest, after.map { $0 / ring.interval + 1 } ?? oldest), newest + 1)
        var text = "{\"interval_ms\":\(ring.interval),\"from_ms\":\(first * ring.interval)"
        for (name, ring) in rings {
            text += ",\"\(name)\":{"
            var isFirst = true
            for (column, figure) in history.names.enumerated() where only?.contains(figure) ?? true {
                if !isFirst { text += "," }
                isFirst = false
                text += JSON.string(figure).text + ":["
                for row in first..<newest + 1 {
                    if row > first { text += "," }
                    text += number(ring.value(column, number: row))
                }
                text += "]"
            }
            text += "}"
        }
        return text + "}"
    }

    private static func number(_ value: Float?) -> String {
        guard let value, value.isFinite else { return "null" }
        if let whole = Int64(exactly: value) { return String(whole) }
        // Six digits are more than a plot shows.
        return abs(value) >= 0.001 ? String((Double(value) * 1000).rounded() / 1000) : "0"
    }
}
