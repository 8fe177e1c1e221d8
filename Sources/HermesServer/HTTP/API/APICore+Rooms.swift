// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire

/// Rooms.
extension APICore {
    private typealias Field = APISchema.Field

    static let badRoom = "A room's name is 1 to 64 letters, digits, '-', '_' or '.'."

    static let roomName = APISchema.text(
        bytes: 1...RoomName.maxBytes,
        APISchema.StringForm(pattern: "^[A-Za-z0-9._-]+$", meaning: "letters, digits, '-', '_' or '.'") {
            RoomName($0) != nil
        }
    )

    static let room = APIRoute.Parameter("room", roomName, required: true, "The room's name.")

    var roomRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/rooms",
                id: "listRooms",
                summary:
                    "The rooms that have members, by name. If more than 8,192 topics are in use, the list may be some seconds old, at most 10.",
                scope: .roomsRead,
                query: [
                    APIRoute.Parameter(
                        "text",
                        .text(bytes: 0...RoomName.maxBytes),
                        "Only rooms whose names contain this."
                    ),
                    APIRoute.Parameter(
                        "after",
                        .text(bytes: 0...RoomName.maxBytes),
                        "Only rooms whose names come after this one."
                    ),
                    Self.limitParameter,
                ],
                success: .ok,
                answer: .object([
                    Field("total", .integer(0 ... .max), required: true, "The number of rooms on all pages."),
                    Field(
                        "rooms",
                        .array(
                            .object([
                                Field("name", Self.roomName, required: true, "The room."),
                                Field(
                                    "members",
                                    .integer(1 ... .max),
                                    required: true,
                                    "The number of connections in it."
                                ),
                            ]),
                            count: 0...Self.maxPage
                        ),
                        required: true,
                        "By name."
                    ),
                ]),
                handler: listRooms
            ),
            APIRoute(
                method: .post,
                path: "/rooms/{room}/messages",
                id: "sayInRoom",
                summary: "Send a text to everyone in a room now; it is not kept.",
                scope: .roomsWrite,
                pathParameters: [Self.room],
                body: .object([
                    Field("text", .text(bytes: 0...RoomLimits.maxTextBytes), required: true, "What is said."),
                    Field(
                        "name",
                        .text(bytes: 1...RoomLimits.maxNameBytes),
                        "The sender's name; if absent, a notice of the server."
                    ),
                ]),
                success: .accepted,
                answer: .object([
                    Field("members", .integer(0 ... .max), required: true, "The number of connections in the room.")
                ]),
                handler: sayInRoom
            ),
            APIRoute(
                method: .delete,
                path: "/rooms/{room}/members/{user}",
                id: "removeFromRoom",
                summary: "Remove an account's connections from a room, and end its MQTT subscriptions to it. They may "
                    + "come back.",
                scope: .roomsWrite,
                pathParameters: [Self.room, APIRoute.user],
                success: .noContent,
                answer: nil,
                failures: [.notFound],
                handler: removeFromRoom
            ),
        ]
    }

    private func listRooms(_ call: APICall) async throws -> APIAnswer {
        let page = await rooms.rooms(
            containing: call.query["text"] ?? "",
            after: call.query["after"] ?? "",
            limit: Self.limit(of: call),
            where: readable(by: call)
        )
        return APIAnswer([
            "total": .integer(page.total),
            "rooms": .array(page.rooms.map { ["name": .string($0.name.rawValue), "members": .integer($0.members)] }),
        ])
    }

    /// Returns a test for the rooms that the topic rules let the caller read; nil if the caller may read all rooms.
    private func readable(by call: APICall) -> (@Sendable (RoomName) -> Bool)? {
        let rules = access.current
        guard let key = call.key, rules.count > 0 else { return nil }
        let bound = rules.bound(to: ClientIdentity(apiKey: key.name))
        return { bound.allows(.subscribe, $0.topic.rawValue) }
    }

    private func sayInRoom(_ call: APICall) async throws -> APIAnswer {
        let room = try room(of: call)
        try check(call, may: .publish, room.topic)
        let text = call.body["text"]?.string ?? ""
        let publication =
            if let name = call.body["name"]?.string {
                try RoomAnnouncement.text(text, from: name, to: room)
            } else {
                try RoomAnnouncement.notice(text, to: room, at: messenger.time.now())
            }
        let members = await topics.subscriberCount(of: room.topic)
        guard topics.publish(publication) else { throw APIProblem(TopicPublisher.congested) }
        Self.messageCame()
        return APIAnswer(["members": .integer(members)])
    }

    private func removeFromRoom(_ call: APICall) async throws -> APIAnswer {
        let room = try room(of: call)
        try check(call, may: .publish, room.topic)
        let account = try await account(of: call)
        let expulsion = RoomExpulsion(of: account, from: room)
        var removed = 0
        // In each round, sessions without a connection are handled last, so that a session that loses its connection
        // during the round is found, too. The second round finds a session that got a connection during the first
        // round.
        for _ in 0..<2 {
            removed += await loops.remove(expulsion)
            removed += try await messenger.durable.endSubscriptions(of: .account(account.id), to: room.topic)
        }
        guard try await removed + removeElsewhere(expulsion) > 0 else {
            throw APIProblem(.notFound, .notFound, "The account is not in this room.")
        }
        return .empty
    }

    /// Removes connections on the other nodes from a room.
    ///
    /// - Returns: the number of removed connections.
    func removeElsewhere(_ expulsion: RoomExpulsion) async throws(APIProblem) -> Int {
        guard let links = messenger.topicLinks else { return 0 }
        guard let count = await links.remove(expulsion) else {
            let message = "A node of the cluster did not answer. Its clients may still be in the room. Try again."
            throw APIProblem(HermesError(.overloaded, message))
        }
        return count
    }

    func room(of call: APICall) throws(APIProblem) -> RoomName {
        guard let room = call.pathParameters["room"].flatMap({ RoomName($0) }) else {
            throw APIProblem(.badRequest, .invalidArgument, Self.badRoom)
        }
        return room
    }
}
