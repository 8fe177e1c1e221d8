// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire

/// Connected MQTT clients. The console has the same operations under paths of its own.
extension APICore {
    private typealias Field = APISchema.Field

    private static let maxClients = 200
    private static let count = APISchema.integer(0 ... .max)

    static let clientNumber = APIRoute.Parameter(
        "number",
        .string(
            length: 1...20,
            APISchema.StringForm(pattern: "^[1-9][0-9]*$", meaning: "a number") { UInt64($0).map { $0 > 0 } ?? false }
        ),
        required: true,
        "The connection's number."
    )

    static let clientQuery = [
        APIRoute.Parameter("after", count, "Only connections with a higher number."),
        APIRoute.Parameter("text", .string(length: 1...256), "Only client ids and owners that contain it."),
        APIRoute.Parameter(
            "limit",
            .integer(1...Int64(maxClients)),
            "The largest number of elements in a page; 50 if absent."
        ),
    ]

    var clientRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/mqtt/clients",
                id: "listClients",
                summary: "The connected MQTT clients by their connections' numbers, page by page.",
                scope: .clientsRead,
                query: Self.clientQuery,
                success: .ok,
                answer: .object([
                    Field(
                        "clients",
                        .array(Self.client, count: 0...Self.maxClients),
                        required: true,
                        "By number, ascending."
                    )
                ]),
                handler: listClients
            ),
            APIRoute(
                method: .delete,
                path: "/mqtt/clients/{number}",
                id: "disconnectClient",
                summary: "End a client's connection. The client keeps its session and can reconnect; over MQTT 5.0 it "
                    + "gets the reason.",
                scope: .clientsWrite,
                pathParameters: [Self.clientNumber],
                success: .ok,
                answer: .object([
                    Field(
                        "client_id",
                        .string(length: 0 ... .max),
                        required: true,
                        "The id of the client that was disconnected."
                    )
                ]),
                failures: [.notFound],
                handler: disconnectClient
            ),
        ]
    }

    private static let client = APISchema.named(
        "MQTTClient",
        .object([
            Field("number", count, required: true, "The connection's number, never used again by this server."),
            Field("client_id", .string(length: 0 ... .max), required: true, "At most 256 bytes of it."),
            Field("owner", .string(length: 0 ... .max), required: true, "The account or token; empty: anonymous."),
            Field("version", .string(length: 1 ... .max), required: true, "MQTT 3.1.1 or MQTT 5.0."),
            Field("listener", .string(length: 1 ... .max), required: true, "The listener's name."),
            Field("address", .string(length: 0 ... .max), required: true, "The client's address; empty: unknown."),
            Field("since_ms", time, required: true, "When it connected, in milliseconds since 1970."),
            Field("subscriptions", count, required: true, "The number of its subscriptions."),
            Field("queued", count, required: true, "Messages that wait to be sent."),
            Field("inflight", count, required: true, "Messages that were sent and not acknowledged."),
            Field("bytes", count, required: true, "What waits for the connection."),
            Field("kept", .boolean, required: true, "Whether the session outlives the connection."),
        ])
    )

    func listClients(_ call: APICall) async throws -> APIAnswer {
        let found = await loops.clients(
            after: UInt64(clamping: call.number("after") ?? 0),
            containing: call.query["text"] ?? "",
            limit: Int(call.number("limit") ?? 50)
        )
        let now = messenger.time.latest()
        return APIAnswer([
            "clients": .array(
                found.map {
                    [
                        "number": .integer($0.number),
                        "client_id": .string($0.clientID),
                        "owner": .string($0.owner),
                        "version": .string($0.version),
                        "listener": .string($0.listener),
                        "address": .string($0.address),
                        "since_ms": .integer($0.since(now).rawValue),
                        "subscriptions": .integer($0.subscriptions),
                        "queued": .integer($0.queued),
                        "inflight": .integer($0.inflight),
                        "bytes": .integer($0.heldBytes),
                        "kept": .boolean($0.isKept),
                    ]
                }
            )
        ])
    }

    func disconnectClient(_ call: APICall) async throws -> APIAnswer {
        let number = call.pathParameters[Self.clientNumber.name].flatMap { UInt64($0) } ?? 0
        guard let clientID = await loops.disconnectClient(number) else {
            throw APIProblem(.notFound, .notFound, "There is no such connection any more.")
        }
        var answer = APIAnswer(["client_id": .string(clientID)])
        answer.found = clientID
        return answer
    }
}

extension ClientListing {
    /// Returns the time when the client connected.
    func since(_ now: Timestamp) -> Timestamp { now.advanced(by: .zero - age) }
}
