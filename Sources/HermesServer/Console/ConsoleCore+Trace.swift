// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesWire
import Logging

/// The steps of a message through the server, and the log.
extension ConsoleCore {
    private static let maxLines = 500

    var traceRoutes: [ConsoleRoute] {
        [
            view(
                "/trace",
                "traceMessage",
                "The steps of the messages with an id or client id.",
                .operator,
                query: [
                    APIRoute.Parameter(
                        "id",
                        .text(bytes: 1...MessageService.maxClientIDBytes),
                        required: true,
                        "The message's id, or the sender's client id."
                    )
                ]
            ) { call in
                APIAnswer(["messages": .array(api.traces(of: call.query["id"] ?? ""))])
            },
            view(
                "/log",
                "listLog",
                "The newest lines of the log, the oldest of them first.",
                .operator,
                query: [
                    APIRoute.Parameter("after", .integer(0 ... .max), "Only lines behind this one."),
                    APIRoute.Parameter("level", .choice(Logger.Level.allCases.map(\.rawValue)), "At least this level."),
                    APIRoute.Parameter("label", .string(length: 1...64), "Only of this listener or logger."),
                    APIRoute.Parameter("text", .string(length: 1...256), "Only lines that contain it."),
                    APIRoute.Parameter("limit", .integer(1...Int64(Self.maxLines)), "The most lines."),
                ],
                isPolled: true,
                listLog
            ),
        ]
    }

    private func listLog(_ call: APICall) async throws -> APIAnswer {
        let lines =
            log?.lines(
                after: call.number("after"),
                atLeast: call.query["level"].flatMap(Logger.Level.init(rawValue:)) ?? .trace,
                label: call.query["label"],
                containing: call.query["text"] ?? "",
                limit: Int(call.number("limit") ?? 200)
            ) ?? []
        return APIAnswer([
            "last": .integer(log?.last ?? 0),
            "lines": .array(
                lines.map {
                    [
                        "number": .integer($0.number),
                        "time_ms": .integer($0.time),
                        "level": .string($0.level.rawValue),
                        "label": .string($0.label),
                        "message": .string($0.message),
                        "fields": .string($0.fields),
                    ]
                }
            ),
        ])
    }
}
#endif
