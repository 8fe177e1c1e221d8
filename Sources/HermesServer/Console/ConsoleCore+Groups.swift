// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesWire

/// Operations on the groups of one account. The operations on all groups are in `ConsoleCore+GroupChanges.swift`.
extension ConsoleCore {
    var groupRoutes: [ConsoleRoute] {
        [
            view(
                "/users/{user}/groups",
                "listGroups",
                "The groups of an account, by number, page by page.",
                .viewer,
                pathParameters: [APIRoute.user],
                query: [
                    APIRoute.Parameter("after", .integer(0...Int64(Int32.max)), "Only groups with a higher number.")
                ],
                listGroups
            )
        ]
    }

    private static let groupsInPage = 100

    private func listGroups(_ call: APICall) async throws -> APIAnswer {
        let user = try await api.account(of: call).id
        let groups = try await api.messenger.groups.groups(
            of: user,
            after: call.number("after").flatMap { Int32(exactly: $0) }.flatMap { GroupID(rawValue: $0) },
            limit: Self.groupsInPage
        )
        return APIAnswer([
            "groups": .array(groups.map(Self.document))
        ])
    }
}
#endif
