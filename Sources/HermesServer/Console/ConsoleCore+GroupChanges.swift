// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesWire

/// Groups of all accounts: listing, showing and changing them.
extension ConsoleCore {
    private static let maxPage = 200
    private static let roleNames: [(role: GroupRole, name: String)] = [
        (.member, "member"), (.administrator, "administrator"), (.owner, "owner"),
    ]
    private static let groupNumber = APIRoute.Parameter(
        "group",
        .string(length: 1...20),
        required: true,
        "The group's number."
    )

    var allGroupRoutes: [ConsoleRoute] {
        [
            view(
                "/groups",
                "searchGroups",
                "Groups by number, all of them or those whose name contains a text.",
                .viewer,
                query: [
                    APIRoute.Parameter(
                        "text",
                        .string(length: 1...Group.maxNameBytes),
                        "A part of the name, with ASCII letters in either case."
                    ),
                    APIRoute.Parameter("after", .integer(0...Int64(Int32.max)), "Only groups with a higher number."),
                    APIRoute.Parameter(
                        "limit",
                        .integer(1...Int64(Self.maxPage)),
                        "The largest number of elements in a page."
                    ),
                ],
                searchGroups
            ),
            view(
                "/groups/{group}",
                "getGroup",
                "A group with its members.",
                .viewer,
                pathParameters: [Self.groupNumber]
            ) {
                call in
                let (group, names) = try await api.messenger.groups.group(try Self.group(of: call))
                return APIAnswer(Self.document(group, names))
            },
            ConsoleRoute(
                route: APIRoute(
                    method: .delete,
                    path: "/groups/{group}/members/{user}",
                    id: "removeFromGroup",
                    summary: "Remove a member who is not the owner, as if the owner did.",
                    scope: nil,
                    pathParameters: [Self.groupNumber, APIRoute.user],
                    success: .noContent,
                    answer: nil,
                    failures: [.notFound],
                    handler: { call in try await administer(.remove(try await api.account(of: call).id), call) }
                ),
                access: .role(.operator)
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .patch,
                    path: "/groups/{group}/members/{user}",
                    id: "changeRoleInGroup",
                    summary: "Give a member another role, as if the owner did. A new owner succeeds the present one.",
                    scope: nil,
                    pathParameters: [Self.groupNumber, APIRoute.user],
                    body: .object([
                        Field("role", .choice(Self.roleNames.map(\.name)), required: true, "The new role.")
                    ]),
                    success: .noContent,
                    answer: nil,
                    failures: [.notFound],
                    handler: changeRole
                ),
                access: .role(.administrator)
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .delete,
                    path: "/groups/{group}",
                    id: "dissolveGroup",
                    summary: "Dissolve a group, as if its owner did.",
                    scope: nil,
                    pathParameters: [Self.groupNumber],
                    success: .noContent,
                    answer: nil,
                    failures: [.notFound],
                    handler: { call in try await administer(.dissolve, call) }
                ),
                access: .role(.administrator)
            ),
        ]
    }

    private static func group(of call: APICall) throws(APIProblem) -> GroupID {
        guard let id = call.pathParameters["group"].flatMap({ Int32($0) }).flatMap(GroupID.init(rawValue:)) else {
            throw APIProblem(.notFound, .notFound, "There is no such group.")
        }
        return id
    }

    private func administer(_ change: GroupAdministration, _ call: APICall) async throws -> APIAnswer {
        try await api.messenger.groups.administer(change, in: try Self.group(of: call))
        return .empty
    }

    private func changeRole(_ call: APICall) async throws -> APIAnswer {
        let name = call.body["role"]?.string
        guard let role = Self.roleNames.first(where: { $0.name == name })?.role else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "There is no such role.")
        }
        return try await administer(.setRole(role, of: try await api.account(of: call).id), call)
    }

    private func searchGroups(_ call: APICall) async throws -> APIAnswer {
        let (found, next) = try await api.messenger.groups.groups(
            named: call.query["text"] ?? "",
            after: call.number("after").flatMap { Int32(exactly: $0) }.flatMap(GroupID.init(rawValue:)),
            limit: Int(call.number("limit") ?? 50)
        )
        return APIAnswer([
            "groups": .array(found.map(Self.document)),
            "next": next.map { .integer($0.rawValue) } ?? .null,
        ])
    }

    static func document(_ group: GroupSummary) -> JSON {
        [
            "number": .integer(group.id.rawValue),
            "name": .string(group.name),
            "members": .integer(group.memberCount),
            "muted": .boolean(group.isMuted),
            "created_at_ms": .integer(group.createdAt.rawValue),
        ]
    }

    private static func document(_ group: Group, _ names: [UserID: String]) -> JSON {
        [
            "group": document(group.summary),
            "members": .array(
                group.members.map { member in
                    [
                        "uid": .integer(member.user.rawValue),
                        "nick_name": .string(names[member.user] ?? ""),
                        "role": .string(roleNames.first { $0.role == member.role }?.name ?? ""),
                        "muted_until_ms": .integer(member.mutedUntil.rawValue),
                    ]
                }
            ),
        ]
    }
}
#endif
