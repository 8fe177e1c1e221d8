// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Logging

/// What goes on in the server: the way of a message, and the log.
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
                        .string(length: 1...MessageService.maxClientIDBytes),
                        required: true,
                        "The message's id, or the sender's client id."
                    )
                ]
            ) { call in
                let found = api.messenger.traces.find(call.query["id"] ?? "").map(ControlTrace.init)
                return APIAnswer(["messages": .array(found.map(Self.document))])
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

    private static func document(_ trace: ControlTrace) -> JSON {
        [
            "id": .string(trace.id),
            "client_id": trace.clientID.map(JSON.string) ?? .null,
            "sender": trace.sender.map { .integer($0) } ?? .null,
            "conversation": trace.conversation.map(JSON.string) ?? .null,
            "recipients": .integer(trace.recipients),
            "steps": .array(
                trace.steps.map {
                    [
                        "step": .string($0.step),
                        "time_ms": .integer($0.time),
                        "after_us": .integer($0.afterMicroseconds),
                        "user": $0.user.map { .integer($0) } ?? .null,
                        "device": $0.device.map(JSON.string) ?? .null,
                        "detail": .string($0.detail),
                    ]
                }
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
