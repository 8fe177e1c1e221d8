// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesPush
import HermesWire

/// The last attempts to post webhooks.
extension ConsoleCore {
    private static let eventID = APIRoute.Parameter("event", .string(length: 1...64), required: true, "The event's id.")

    var webhookRoutes: [ConsoleRoute] {
        [
            view(
                "/webhooks",
                "listWebhooks",
                "The last attempts to post webhooks, the newest first.",
                .operator,
                query: [
                    APIRoute.Parameter(
                        "limit",
                        .integer(1...Int64(WebhookAttempts.maxAttempts)),
                        "The most attempts; 100 if absent."
                    )
                ],
                listWebhooks
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .post,
                    path: "/webhooks/{event}/again",
                    id: "sendWebhookAgain",
                    summary: "Queue an event from the last attempts again. It keeps its id.",
                    scope: nil,
                    pathParameters: [Self.eventID],
                    success: .accepted,
                    answer: nil,
                    failures: [.notFound],
                    handler: sendAgain
                ),
                access: .role(.operator)
            ),
        ]
    }

    private func listWebhooks(_ call: APICall) async throws -> APIAnswer {
        let attempts = outbound.poster?.attempts.newest(Int(call.number("limit") ?? 100)) ?? []
        return APIAnswer([
            "enabled": .boolean(outbound.poster != nil),
            "attempts": .array(
                attempts.map { attempt in
                    let body = try? JSONParser.parse(attempt.event.body)
                    return [
                        "number": .integer(attempt.number),
                        "time_ms": .integer(attempt.time.rawValue),
                        "event": .string(attempt.event.id),
                        "type": body?["type"] ?? .null,
                        "user": attempt.event.user.map { .integer($0.rawValue) } ?? .null,
                        "attempt": .integer(attempt.attempt),
                        "status": attempt.status.map { .integer($0) } ?? .null,
                        "failure": attempt.failure.map(JSON.string) ?? .null,
                        "duration_ms": .integer(Int64(attempt.duration / .milliseconds(1))),
                    ]
                }
            ),
        ])
    }

    private func sendAgain(_ call: APICall) async throws -> APIAnswer {
        guard let poster = outbound.poster, let outbox = outbound.outbox else {
            throw APIProblem(.notFound, .notFound, "There are no webhooks: webhooks.url is not set.")
        }
        guard let event = poster.attempts.event(call.pathParameters["event"] ?? "") else {
            throw APIProblem(.notFound, .notFound, "The server does not remember this event any more.")
        }
        try await outbox.append(again: event)
        return .empty
    }
}
#endif
