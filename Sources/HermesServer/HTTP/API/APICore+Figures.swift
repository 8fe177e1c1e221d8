// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// The figures that the server keeps over time. The console has the same operation.
extension APICore {
    private typealias Field = APISchema.Field

    static let figureQuery = [
        APIRoute.Parameter("span", .choice(["hour", "month"]), "hour if absent."),
        APIRoute.Parameter("after_ms", time, "Only what is later, in milliseconds since 1970."),
        APIRoute.Parameter(
            "figure",
            .array(.string(length: 1...FigureHistory.maxNameBytes), count: 0...FigureHistory.maxFigures),
            "Only these figures; all if absent."
        ),
    ]

    var figureRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/stats/figures",
                id: "getFigures",
                summary: "The figures of the server in the last hour, or in 30 days with means and maxima of half an "
                    + "hour.",
                scope: .statsRead,
                query: Self.figureQuery,
                success: .ok,
                answer: .object([
                    Field("interval_ms", .integer(1 ... .max), required: true, "The time from one value to the next."),
                    Field("from_ms", Self.time, required: true, "The time of the first value, in ms since 1970."),
                    Field(
                        "figures",
                        .anyObject,
                        required: true,
                        "By name: the values, or the means of a month; null: not known."
                    ),
                    Field("maxima", .anyObject, "By name: the largest values; only of a month."),
                ]),
                handler: { call in
                    guard let history = figures() else {
                        return APIAnswer(text: Self.historyText(FigureHistory(names: []), for: call))
                    }
                    try Self.checkFigures(of: call, in: history)
                    return APIAnswer(text: Self.historyText(history, for: call))
                }
            )
        ]
    }

    /// - Throws: APIProblem if a requested figure does not exist.
    private static func checkFigures(of call: APICall, in history: FigureHistory) throws(APIProblem) {
        guard let unknown = call.lists["figure"]?.first(where: { !history.names.contains($0) }) else { return }
        throw APIProblem(
            .badRequest,
            .invalidArgument,
            "In the query: there is no figure \"\(unknown.prefix(64))\"; without \"figure\" the answer has all figures."
        )
    }

    /// Returns the requested part of the history as JSON.
    static func historyText(_ history: FigureHistory, for call: APICall) -> String {
        text(
            of: history,
            isMonth: call.query["span"] == "month",
            after: call.number("after_ms"),
            only: call.lists["figure"].map(Set.init)
        )
    }

    /// Writes the text without building ``JSON`` values, because a month has a hundred thousand numbers.
    private static func text(of history: FigureHistory, isMonth: Bool, after: Int64?, only: Set<String>?) -> String {
        let rings = isMonth ? [("figures", history.means), ("maxima", history.maxima)] : [("figures", history.recent)]
        let rows = rings[0].1.rows(after: after)
        let interval = rings[0].1.interval
        var text = "{\"interval_ms\":\(interval),\"from_ms\":\(rows.lowerBound * interval)"
        for (name, ring) in rings {
            text += ",\"\(name)\":{"
            var isFirst = true
            for (column, figure) in history.names.enumerated() where only?.contains(figure) ?? true {
                if !isFirst { text += "," }
                isFirst = false
                text += JSON.string(figure).text + ":["
                for row in rows {
                    if row > rows.lowerBound { text += "," }
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
        // Three decimal places are more than a plot shows.
        return abs(value) >= 0.001 ? String((Double(value) * 1000).rounded() / 1000) : "0"
    }
}

extension FigureRing {
    /// Returns the numbers of the rows that are later than `time`, which is in milliseconds since 1970. If `time` is
    /// nil, returns the numbers of all rows.
    func rows(after time: Int64?) -> Range<Int64> {
        guard let newest else { return 0..<0 }
        let oldest = max(0, newest - Int64(rows) + 1)
        let first = min(max(oldest, time.map { $0 / interval + 1 } ?? oldest), newest + 1)
        return first..<newest + 1
    }
}
