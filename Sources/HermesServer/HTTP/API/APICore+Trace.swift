// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// The steps of a message through the server. The console shows them, too.
extension APICore {
    private typealias Field = APISchema.Field

    private static let number = APISchema.integer(0 ... .max)
    private static let text = APISchema.string(length: 0 ... .max)

    var traceRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/messages/{id}/trace",
                id: "traceMessage",
                summary: "The steps of the messages and pushes with an id or client id, of the last 10,000. Never the "
                    + "content.",
                scope: .traceRead,
                pathParameters: [
                    APIRoute.Parameter(
                        "id",
                        .text(bytes: 1...MessageService.maxClientIDBytes),
                        required: true,
                        "The message's id, or the sender's client id."
                    )
                ],
                success: .ok,
                answer: .object([
                    Field(
                        "messages",
                        .array(Self.trace, count: 1...Int.max),
                        required: true,
                        "The newest first; client ids are unique for each sender only."
                    )
                ]),
                failures: [.notFound],
                handler: traceMessage
            )
        ]
    }

    private static let trace = APISchema.named(
        "Trace",
        .object([
            Field("id", .string(length: 26...26), required: true, "The message's id."),
            Field("client_id", text, "The sender's id of it; absent: it has none."),
            Field("sender", uid, "Who sent it; absent: a back end."),
            Field("conversation", text, "direct/LOWER-HIGHER or group/NUMBER, with uids; absent: a push."),
            Field("recipients", number, required: true, "The number of inboxes."),
            Field("steps", .array(step, count: 0...Int.max), required: true, "In the order of their times."),
        ])
    )

    private static let step = APISchema.named(
        "TraceStep",
        .object([
            Field(
                "step",
                .string(length: 1 ... .max),
                required: true,
                "accepted, committed, refused, delivered, acknowledged or pushed."
            ),
            Field("time_ms", number, required: true, "In milliseconds since 1970."),
            Field("after_us", .integer(.min ... .max), required: true, "Microseconds since it was accepted."),
            Field("user", uid, "Whose device."),
            Field("device", text, "Which device."),
            Field("detail", text, required: true, "The protocol, the number of inboxes, or the reason."),
        ])
    )

    private func traceMessage(_ call: APICall) async throws -> APIAnswer {
        let found = traces(of: call.pathParameters["id"] ?? "")
        guard !found.isEmpty else {
            throw APIProblem(
                .notFound,
                .notFound,
                "The server remembers no message with this id; it remembers the last 10,000."
            )
        }
        return APIAnswer(["messages": .array(found)])
    }

    /// Returns the messages with an id or client id, with their steps.
    func traces(of id: String) -> [JSON] { messenger.traces.find(id).map(ControlTrace.init).map(Self.document) }

    private static func document(_ trace: ControlTrace) -> JSON {
        .members([
            "id": .string(trace.id),
            "client_id": trace.clientID.map(JSON.string),
            "sender": trace.sender.map { .integer($0) },
            "conversation": trace.conversation.map(JSON.string),
            "recipients": .integer(trace.recipients),
            "steps": .array(
                trace.steps.map {
                    .members([
                        "step": .string($0.step),
                        "time_ms": .integer($0.time),
                        "after_us": .integer($0.afterMicroseconds),
                        "user": $0.user.map { .integer($0) },
                        "device": $0.device.map(JSON.string),
                        "detail": .string($0.detail),
                    ])
                }
            ),
        ])
    }
}
