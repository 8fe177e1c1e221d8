// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Reads the administrators of the console and their actions. The console has the same operations.
extension APICore {
    private typealias Field = APISchema.Field

    private static let maxAuditPage: Int64 = 200
    private static let text = APISchema.string(length: 0 ... .max)

    static let auditQuery = [
        APIRoute.Parameter("before", .integer(1 ... .max), "Only entries before this one."),
        APIRoute.Parameter("limit", .integer(1...maxAuditPage), "The most entries; 100 if absent."),
    ]

    var administratorRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/administrators",
                id: "listAdministrators",
                summary: "Who may log in to the console, and in which role.",
                scope: .auditRead,
                success: .ok,
                answer: .object([
                    Field(
                        "administrators",
                        .array(
                            .object([
                                Field("name", Self.text, required: true, "The administrator's name."),
                                Field(
                                    "role",
                                    .choice(AdministratorRole.allCases.map(\.rawValue)),
                                    required: true,
                                    "What it may do."
                                ),
                                Field("second_factor", .boolean, required: true, "Whether its log-in needs a code."),
                                Field("created_at_ms", Self.time, required: true, "In milliseconds since 1970."),
                                Field("last_login_at_ms", Self.time, "In milliseconds since 1970; absent: never."),
                            ]),
                            count: 0...Int.max
                        ),
                        required: true,
                        "By name."
                    )
                ]),
                handler: listAdministrators
            ),
            APIRoute(
                method: .get,
                path: "/audit",
                id: "listAudit",
                summary: "What administrators did and tried to do, the newest first.",
                scope: .auditRead,
                query: Self.auditQuery,
                success: .ok,
                answer: .object([
                    Field(
                        "entries",
                        .array(Self.auditEntry, count: 0...Int(Self.maxAuditPage)),
                        required: true,
                        "The newest first."
                    )
                ]),
                handler: listAudit
            ),
        ]
    }

    private static let auditEntry = APISchema.named(
        "AuditEntry",
        .object([
            Field("id", .integer(1 ... .max), required: true, "The entry's number."),
            Field("time_ms", time, required: true, "In milliseconds since 1970."),
            Field("who", text, required: true, "The administrator's name, as it was given."),
            Field("address", text, required: true, "Where it came from; local: the command line."),
            Field("action", text, required: true, "The operation."),
            Field("target", text, required: true, "What it was about."),
            Field("result", text, required: true, "done, or why it was refused."),
            Field("code", .integer(1 ... .max), "The error code, if it was refused."),
        ])
    )

    func listAdministrators(_ call: APICall) async throws -> APIAnswer {
        let all = try await administrators.administrators()
        return APIAnswer([
            "administrators": .array(
                all.map {
                    // The answer has neither the password's hash nor the second factor's secret.
                    .members([
                        "name": .string($0.name.rawValue),
                        "role": .string($0.role.rawValue),
                        "second_factor": .boolean($0.secondFactor != nil),
                        "created_at_ms": .integer($0.createdAt.rawValue),
                        "last_login_at_ms": $0.lastLoginAt.map { .integer($0.rawValue) },
                    ])
                }
            )
        ])
    }

    func listAudit(_ call: APICall) async throws -> APIAnswer {
        let entries = try await administrators.auditLog(
            before: call.number("before"),
            limit: Int(call.number("limit") ?? 100)
        )
        return APIAnswer([
            "entries": .array(entries.map(Self.auditEntry))
        ])
    }

    private static func auditEntry(_ entry: AuditEntry) -> JSON {
        let event = entry.event
        return .members([
            "id": .integer(entry.id),
            "time_ms": .integer(entry.time.rawValue),
            "who": .string(event.who),
            "address": .string(event.address),
            "action": .string(event.action),
            "target": .string(event.target),
            "result": .string(event.result),
            "code": event.code.map { .integer($0.rawValue) },
        ])
    }
}
