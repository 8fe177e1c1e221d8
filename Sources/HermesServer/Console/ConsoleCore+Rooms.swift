// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire

/// Watching and closing rooms. Saying something in a room and removing somebody from it are operations of the HTTP API.
extension ConsoleCore {
    var roomRoutes: [ConsoleRoute] {
        [
            ConsoleRoute(
                route: APIRoute(
                    method: .get,
                    path: "/rooms/{room}/watch",
                    id: "watchRoom",
                    summary: "Follow what is said in a room, as Server-Sent Events.",
                    scope: nil,
                    pathParameters: [APICore.room],
                    success: .ok,
                    answer: .string(length: 0 ... .max),
                    isStream: true,
                    handler: watchRoom
                ),
                access: .role(.operator),
                isPolled: true
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .delete,
                    path: "/rooms/{room}/members",
                    id: "closeRoom",
                    summary: "Remove everybody from a room, and end MQTT subscriptions to it. They may come back.",
                    scope: nil,
                    pathParameters: [APICore.room],
                    success: .ok,
                    answer: .anyObject,
                    handler: closeRoom
                ),
                access: .role(.operator)
            ),
        ]
    }

    private func watchRoom(_ call: APICall) async throws -> APIAnswer {
        let room = try api.room(of: call)
        return APIAnswer(stream: try await stream(of: TopicFilter(room.topic), to: call))
    }

    private func closeRoom(_ call: APICall) async throws -> APIAnswer {
        let room = try api.room(of: call)
        let everybody = RoomExpulsion(of: nil, from: room)
        let count = try await api.loops.remove(everybody) + api.removeElsewhere(everybody)
        return APIAnswer(["removed": .integer(count)])
    }
}
#endif
