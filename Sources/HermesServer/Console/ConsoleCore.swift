// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesWire

/// The operations of the console: logging in, the console's own views, and the operations of the HTTP API that
/// administrators may use.
struct ConsoleCore: Sendable {
    typealias Field = APISchema.Field

    let api: APICore
    let administrators: AdministratorService
    let cookie: ConsoleCookie
    let figures: Figures?
    let log: LogTail?
    let outbound: OutboundServices
    /// The values of the settings in force.
    let configuration: [ConfiguredValue]
    /// The open listeners; empty until all are open.
    let listeners: @Sendable () -> [BoundAddress]
    let failedLogins: FailedLogins

    /// All operations of the console.
    var routes: [ConsoleRoute] {
        loginRoutes + viewRoutes + searchRoutes + traceRoutes + clientRoutes + webhookRoutes + roomRoutes + topicRoutes
            + groupRoutes + allGroupRoutes + keyRoutes + reusedRoutes
    }

    // MARK: The HTTP API

    /// The ids of those operations of the HTTP API that the console also offers, with the role that an administrator
    /// needs for each operation. Operations that act as an account, or that read its messages, are not among them.
    static let reused: [String: AdministratorRole] = [
        "listUsers": .viewer, "getUser": .viewer, "listDevices": .viewer, "listTokens": .viewer,
        "listInvitations": .viewer,
        "listRooms": .viewer, "getDeliveryStatistics": .viewer, "getDeliverySeries": .viewer,
        "getRetained": .operator, "removeDevice": .operator, "revokeTokens": .operator, "sayInRoom": .operator,
        "removeFromRoom": .operator, "publish": .operator, "deleteRetained": .operator,
        "createUser": .administrator, "changeUser": .administrator, "deleteUser": .administrator,
        "createInvitation": .administrator, "revokeInvitation": .administrator,
    ]

    /// The ids of the reused operations that the page requests by itself.
    private static let polled: Set<String> = ["getDeliveryStatistics", "getDeliverySeries"]

    private var reusedRoutes: [ConsoleRoute] {
        api.routes.compactMap { route in
            Self.reused[route.id].map {
                ConsoleRoute(route: route, access: .role($0), isPolled: Self.polled.contains(route.id))
            }
        }
    }

    // MARK: Logging in

    private var loginRoutes: [ConsoleRoute] {
        [
            ConsoleRoute(
                route: APIRoute(
                    method: .post,
                    path: "/login",
                    id: "logIn",
                    summary: "Log in. If a code is needed, the answer says so.",
                    scope: nil,
                    body: .object([
                        Field("name", .string(length: 1...256), required: true, "The administrator's name."),
                        Field("password", .string(length: 1...1_024), required: true, "The password."),
                        Field("code", .string(length: 0...64), "The code of the second factor, or a recovery code."),
                    ]),
                    success: .ok,
                    answer: .anyObject,
                    handler: logIn
                ),
                access: .everybody
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .get,
                    path: "/session",
                    id: "getSession",
                    summary: "Who is logged in; null: nobody.",
                    scope: nil,
                    success: .ok,
                    answer: .anyObject,
                    handler: showSession
                ),
                access: .everybody
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .post,
                    path: "/logout",
                    id: "logOut",
                    summary: "End the session.",
                    scope: nil,
                    success: .noContent,
                    answer: nil,
                    handler: logOut
                ),
                access: .role(.viewer)
            ),
        ]
    }

    /// Returns a success even if nobody is logged in. The page makes this request before each login, and browsers
    /// would log a failure as an error.
    private func showSession(_ call: APICall) async throws -> APIAnswer {
        let session = call.console?.token.flatMap { administrators.session($0, isUse: true) }
        return APIAnswer(["session": session.map(Self.document) ?? .null])
    }

    private func logIn(_ call: APICall) async throws -> APIAnswer {
        let name = call.body["name"]?.string ?? ""
        let address = call.console?.address ?? ""
        let result: AdministratorService.LoginResult
        do {
            result = try await administrators.logIn(
                name: name,
                password: call.body["password"]?.string ?? "",
                code: call.body["code"]?.string,
                address: address,
                replacing: call.console?.token
            )
        } catch {
            failedLogins.note(error.code, address: address, user: name)
            throw error
        }
        switch result {
        case .codeNeeded: return APIAnswer(["code_needed": .boolean(true)])
        case .session(let token, let session):
            var answer = APIAnswer(Self.document(session))
            answer.headers = [("Set-Cookie", cookie.setting(token))]
            return answer
        }
    }

    /// Ends the session. ``Console`` has already read the administrator's name from the session, and records the logout
    /// under this name.
    private func logOut(_ call: APICall) async throws -> APIAnswer {
        if let token = call.console?.token { administrators.logOut(token) }
        var answer = APIAnswer.empty
        answer.headers = [("Set-Cookie", cookie.removing), ("Clear-Site-Data", "\"cache\"")]
        return answer
    }

    private static func document(_ session: ConsoleSessions.Session) -> JSON {
        [
            "name": .string(session.name.rawValue),
            "role": .string(session.role.rawValue),
            "csrf_token": .string(session.requestToken),
        ]
    }

    /// Returns a time as JSON; null means never.
    static func time(_ time: Timestamp?) -> JSON { time.map { .integer($0.rawValue) } ?? .null }

    // MARK: Views

    private var viewRoutes: [ConsoleRoute] {
        [
            view("/overview", "getOverview", "The server and its listeners.", .viewer, isPolled: true, overview),
            figuresRoute,
            view("/configuration", "getConfiguration", "The values in force.", .operator, showConfiguration),
            view("/administrators", "listAdministrators", "Who may log in.", .administrator, api.listAdministrators),
            view(
                "/audit",
                "listAudit",
                "What administrators did, the newest first.",
                .operator,
                query: APICore.auditQuery,
                api.listAudit
            ),
        ]
    }

    func view(
        _ path: String,
        _ id: String,
        _ summary: String,
        _ role: AdministratorRole,
        pathParameters: [APIRoute.Parameter] = [],
        query: [APIRoute.Parameter] = [],
        isPolled: Bool = false,
        _ handler: @escaping APIRoute.Handler
    ) -> ConsoleRoute {
        ConsoleRoute(
            route: APIRoute(
                method: .get,
                path: path,
                id: id,
                summary: summary,
                scope: nil,
                pathParameters: pathParameters,
                query: query,
                success: .ok,
                answer: .anyObject,
                handler: handler
            ),
            access: .role(role),
            isPolled: isPolled
        )
    }

    private func overview(_ call: APICall) async throws -> APIAnswer {
        APIAnswer([
            "version": .string(HermesVersion.current),
            "time_ms": .integer(api.messenger.time.latest().rawValue),
            "online": .integer(api.messenger.devices.count),
            "listeners": .array(
                listeners().map { ["name": .string($0.name), "host": .string($0.host), "port": .integer($0.port)] }
            ),
        ])
    }

    private func showConfiguration(_ call: APICall) async throws -> APIAnswer {
        APIAnswer([
            "settings": .array(
                configuration.map {
                    ["key": .string($0.key), "value": .string($0.text), "source": .string($0.origin)]
                }
            )
        ])
    }

    // MARK: Keys of the HTTP API

    private static let keyName = APISchema.string(length: 1...APIKeyService.maxNameCharacters)

    private var keyRoutes: [ConsoleRoute] {
        [
            view("/keys", "listKeys", "The keys of the HTTP API, without their secrets.", .operator, listKeys),
            ConsoleRoute(
                route: APIRoute(
                    method: .post,
                    path: "/keys",
                    id: "createKey",
                    summary: "Create a key; only this answer has its secret.",
                    scope: nil,
                    body: .object([
                        Field("name", Self.keyName, required: true, "The key's name."),
                        Field("scopes", .string(length: 1...512), required: true, "With commas between, or all."),
                    ]),
                    success: .created,
                    answer: .anyObject,
                    failures: [.conflict],
                    handler: createKey
                ),
                access: .role(.administrator)
            ),
            ConsoleRoute(
                route: APIRoute(
                    method: .delete,
                    path: "/keys/{key}",
                    id: "revokeKey",
                    summary: "Revoke a key at once.",
                    scope: nil,
                    pathParameters: [APIRoute.Parameter("key", Self.keyName, required: true, "The key's name.")],
                    success: .noContent,
                    answer: nil,
                    failures: [.notFound],
                    handler: { call in
                        try await api.keys.revoke(name: call.pathParameters["key"] ?? "")
                        return .empty
                    }
                ),
                access: .role(.administrator)
            ),
        ]
    }

    private func listKeys(_ call: APICall) async throws -> APIAnswer {
        let keys = try await api.keys.keys()
        return APIAnswer([
            "keys": .array(
                keys.map {
                    [
                        "name": .string($0.name),
                        "scopes": .string(APIScope.text($0.scopes)),
                        "created_at_ms": .integer($0.createdAt.rawValue),
                        "last_used_at_ms": Self.time($0.lastUsedAt),
                    ]
                }
            )
        ])
    }

    private func createKey(_ call: APICall) async throws -> APIAnswer {
        let text = call.body["scopes"]?.string ?? ""
        let scopes = text == "all" ? Set(APIScope.allCases) : try APIScope.list(text)
        let made = try await api.keys.create(name: call.body["name"]?.string ?? "", scopes: scopes)
        return APIAnswer(["name": .string(made.key.name), "secret": .string(made.secret)])
    }
}
#endif
