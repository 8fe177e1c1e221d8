// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
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
            query: APICore.figureQuery,
            isPolled: true
        ) { call in
            guard let figures else { return APIAnswer(["figures": .object([])]) }
            return APIAnswer(text: APICore.historyText(figures.history, for: call))
        }
    }
}
#endif
