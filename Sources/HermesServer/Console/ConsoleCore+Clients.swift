// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesWire

/// MQTT clients, their kept sessions, and the search for accounts by a part of their names.
extension ConsoleCore {
    private static let maxPage = 200
    private static let page = APIRoute.Parameter(
        "limit",
        .integer(1...Int64(maxPage)),
        "The largest number of elements in a page."
    )

    private static func text(_ what: String) -> APIRoute.Parameter {
        APIRoute.Parameter("text", .string(length: 1...256), "Only \(what) that contain it.")
    }

    var clientRoutes: [ConsoleRoute] {
        [
            view(
                "/clients",
                "listClients",
                "The connected MQTT clients by their connections' numbers.",
                .operator,
                query: APICore.clientQuery,
                api.listClients
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .delete,
                    path: "/clients/{number}",
                    id: "disconnectClient",
                    summary: "End a connection. The client may come back, and keeps its session.",
                    scope: nil,
                    pathParameters: [APICore.clientNumber],
                    success: .ok,
                    answer: .anyObject,
                    failures: [.notFound],
                    handler: api.disconnectClient
                ),
                access: .role(.operator)
            ),
            view(
                "/sessions",
                "listSessions",
                "The kept MQTT sessions, with what waits for them.",
                .operator,
                query: [
                    APIRoute.Parameter("after", .integer(0 ... .max), "Only sessions with a higher number."),
                    Self.text("client ids and owners"), Self.page,
                ],
                listSessions
            ),
            view(
                "/search/users",
                "searchUsers",
                "Accounts whose name contains a text, by number.",
                .viewer,
                query: [
                    APIRoute.Parameter(
                        "text",
                        .string(length: 1...NickName.maxBytes),
                        required: true,
                        "A part of the name, in either case."
                    ),
                    APIRoute.Parameter("after", .integer(0...Int64(Int32.max)), "Only accounts with a higher number."),
                    Self.page,
                ],
                searchUsers
            ),
        ]
    }

    private func limit(of call: APICall) -> Int { Int(call.number("limit") ?? 50) }

    private func listSessions(_ call: APICall) async throws -> APIAnswer {
        let found = try await api.messenger.durable.list(
            after: DurableSessionID(rawValue: call.number("after") ?? 0),
            containing: call.query["text"] ?? "",
            limit: limit(of: call)
        )
        return APIAnswer([
            "sessions": .array(
                found.map {
                    [
                        "number": .integer($0.id.rawValue),
                        "client_id": .string(String($0.key.clientID.prefix(256))),
                        "owner": .string(String($0.ownerName.prefix(256))),
                        "online": .boolean($0.isOnline),
                        "queued": .integer($0.queuedCount),
                        "queued_bytes": .integer($0.queuedBytes),
                        "expires_at_ms": $0.isOnline ? .null : Self.time($0.expiresAt),
                    ]
                }
            )
        ])
    }

    private func searchUsers(_ call: APICall) async throws -> APIAnswer {
        let (found, next) = try await api.messenger.accounts.accounts(
            named: call.query["text"] ?? "",
            after: call.number("after").flatMap { UserID($0) },
            limit: limit(of: call)
        )
        return APIAnswer([
            "users": .array(found.map(api.document)),
            "next": next.map { .integer($0.rawValue) } ?? .null,
        ])
    }
}
#endif
