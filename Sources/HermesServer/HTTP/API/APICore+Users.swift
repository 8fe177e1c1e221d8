// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Accounts.
extension APICore {
    private typealias Field = APISchema.Field

    var userRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/users",
                id: "listUsers",
                summary: "Accounts by uid, page by page.",
                scope: .usersRead,
                query: [
                    APIRoute.Parameter("after", .integer(0...Int64(Int32.max)), "Only accounts with a uid above this."),
                    Self.limitParameter,
                ],
                success: .ok,
                answer: .object([
                    Field("users", .array(Self.user, count: 0...Self.maxPage), required: true, "By uid, ascending.")
                ]),
                handler: listUsers
            ),
            APIRoute(
                method: .post,
                path: "/users",
                id: "createUser",
                summary: "Create an account, regardless of accounts.registration.",
                scope: .usersWrite,
                body: .object([
                    Field("nick_name", Self.nickName, required: true, "The name for people."),
                    Field("password", Self.password, required: true, "The password."),
                ]),
                success: .created,
                answer: Self.user,
                failures: [.conflict],
                handler: createUser
            ),
            APIRoute(
                method: .get,
                path: "/users/{user}",
                id: "getUser",
                summary: "One account.",
                scope: .usersRead,
                pathParameters: [APIRoute.user],
                success: .ok,
                answer: Self.user,
                failures: [.notFound],
                handler: { APIAnswer(document(of: try await account(of: $0))) }
            ),
            APIRoute(
                method: .patch,
                path: "/users/{user}",
                id: "changeUser",
                summary: "Change an account; absent fields stay. A new password or disabling ends all its sessions.",
                scope: .usersWrite,
                pathParameters: [APIRoute.user],
                body: .object([
                    Field("nick_name", Self.nickName, "The name for people."),
                    Field("avatar_url", .text(bytes: 0...1_024), "The URL of its picture."),
                    Field("password", Self.password, "The password."),
                    Field("disabled", .boolean, "Whether it is disabled."),
                ]),
                success: .ok,
                answer: Self.user,
                failures: [.notFound, .conflict],
                handler: changeUser
            ),
            APIRoute(
                method: .delete,
                path: "/users/{user}",
                id: "deleteUser",
                summary: """
                    Delete an account with its devices, tokens, inbox, contacts, memberships and MQTT sessions. \
                    Messages to others stay. The name is free once the server has removed all publications that are \
                    retained below user/NAME/.
                    """,
                scope: .usersWrite,
                pathParameters: [APIRoute.user],
                success: .noContent,
                answer: nil,
                failures: [.notFound],
                handler: deleteUser
            ),
        ]
    }

    /// ``NickName`` counts characters, each of which may consist of many code points.
    private static let nickName = APISchema.string(length: 1...NickName.maxBytes)
    private static let password = APISchema.text(bytes: 6...256)

    private static let user = APISchema.named(
        "User",
        .object([
            Field("uid", uid, required: true, "The account's number."),
            Field("nick_name", nickName, required: true, "The name for people."),
            Field("avatar_url", .text(bytes: 0...1_024), required: true, "The URL of its picture."),
            Field("disabled", .boolean, required: true, "Whether it is disabled."),
            Field("online", .boolean, required: true, "Whether one of its devices is connected."),
            Field("created_at_ms", time, required: true, "In milliseconds since 1970."),
        ])
    )

    func document(of account: Account) -> JSON {
        [
            "uid": .integer(account.id.rawValue),
            "nick_name": .string(account.nickName.rawValue),
            "avatar_url": .string(account.avatarURL),
            "disabled": .boolean(account.isDisabled),
            "online": .boolean(messenger.devices.isOnline(account.id)),
            "created_at_ms": .integer(account.createdAt.rawValue),
        ]
    }

    private func listUsers(_ call: APICall) async throws -> APIAnswer {
        let after = call.number("after").flatMap { UserID($0) }
        let accounts = try await messenger.accounts.accounts(after: after, limit: Self.limit(of: call))
        return APIAnswer(["users": .array(accounts.map(document))])
    }

    private func createUser(_ call: APICall) async throws -> APIAnswer {
        let account = try await messenger.accounts.createAccount(
            nickName: call.body["nick_name"]?.string ?? "",
            password: call.body["password"]?.string ?? ""
        )
        return APIAnswer(document(of: account))
    }

    private func changeUser(_ call: APICall) async throws -> APIAnswer {
        let accounts = messenger.accounts
        let user = try await account(of: call).id
        // All checks come before the first change.
        if let password = call.body["password"]?.string { try accounts.check(newPassword: password) }
        if call.body["nick_name"] != nil || call.body["avatar_url"] != nil {
            _ = try await accounts.changeProfile(
                of: user,
                nickName: call.body["nick_name"]?.string,
                avatarURL: call.body["avatar_url"]?.string
            )
        }
        if let password = call.body["password"]?.string { try await accounts.setPassword(of: user, to: password) }
        if let isDisabled = call.body["disabled"]?.boolean { try await accounts.setDisabled(user, isDisabled) }
        return APIAnswer(document(of: try await account(of: APICall(user: user, call))))
    }
}

extension APICore {
    private func deleteUser(_ call: APICall) async throws -> APIAnswer {
        try await messenger.deleteAccount(account(of: call).id)
        return .empty
    }
}

extension APICall {
    /// Copies a call, with the account's number in place of its name, because the account may have been renamed.
    fileprivate init(user: UserID, _ call: APICall) {
        self.init(
            key: call.key,
            pathParameters: [APIRoute.user.name: String(user.rawValue)],
            query: call.query,
            body: call.body,
            bodyBytes: call.bodyBytes,
            idempotencyKey: call.idempotencyKey
        )
    }
}
