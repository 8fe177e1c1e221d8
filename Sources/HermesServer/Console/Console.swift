// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HTTPTypes
import HermesCore
import HermesWire
import Hummingbird
import Logging
import NIOCore

/// The HTTP side of the console: registers its routes, with their common checks.
struct Console: Sendable {
    /// The prefix of the paths of all routes.
    static let prefix = "/console/api"
    private static let methods: [HTTPRequest.Method] = [.get, .put, .post, .delete, .patch, .head, .options]

    let administrators: AdministratorService
    let cookie: ConsoleCookie
    let routes: [ConsoleRoute]
    let events: EventStreams
    let logger: Logger

    init(
        _ routes: [ConsoleRoute],
        events: EventStreams,
        administrators: AdministratorService,
        cookie: ConsoleCookie,
        logger: Logger
    ) {
        self.routes = routes
        self.events = events
        self.administrators = administrators
        self.cookie = cookie
        self.logger = logger
    }

    func register(on router: Router<HTTPContext>) {
        for route in routes {
            router.on(RouterPath(Self.prefix + route.route.path), method: route.route.method) { request, context in
                await respond(to: request, context, route)
            }
        }
        for method in Self.methods {
            router.on("\(Self.prefix)/**", method: method) { _, _ in
                Self.response(APIProblem(.notFound, .notFound, "The console has no such path."))
            }
        }
    }

    // MARK: A request

    private func respond(to request: Request, _ context: HTTPContext, _ route: ConsoleRoute) async -> Response {
        var caller = ConsoleCaller(
            address: context.client(of: request.headers)?.ipAddress ?? "",
            token: cookie.token(in: request.headers[values: .cookie]),
            session: nil
        )
        var target = ""
        do {
            target = Self.target(of: context, route.route)
            caller = try admit(request, route, caller)
            var call = try await API.call(request, context, route.route, nil)
            call.console = caller
            target = Self.target(of: call, route.route)
            let answer = try await route.route.handler(call)
            if let found = answer.found { target += " \(found)" }
            if route.isChange || answer.stream != nil { await note(route, caller, target, "done") }
            if let stream = answer.stream {
                return API.response(
                    stream,
                    of: events,
                    Pages.headers("", [.cacheControl: "no-store"]),
                    to: context.channel
                )
            }
            return Self.response(answer, route.route.success)
        } catch {
            let problem = problem(error, route)
            // A login records its own failures. Other requests without a session are not recorded. A change that was
            // not admitted also counts against the session's rate. Changes beyond this rate are not recorded.
            // Otherwise somebody could push all other entries out of the audit log.
            let isPaid = caller.session != nil || caller.token.map(administrators.mayChange) ?? false
            if route.isChange, route.access != .everybody, isPaid {
                await note(route, caller, target, problem.detail, code: problem.code)
            }
            return Self.response(problem)
        }
    }

    /// Checks who sends the request, and whether this caller may make it.
    private func admit(
        _ request: Request,
        _ route: ConsoleRoute,
        _ caller: ConsoleCaller
    ) throws(APIProblem) -> ConsoleCaller {
        try Self.checkOrigin(request, route)
        guard case .role(let role) = route.access else { return caller }
        guard let token = caller.token, let session = administrators.session(token, isUse: !route.isPolled) else {
            throw APIProblem(.unauthorized, .notAuthenticated, "Log in to the console; the session has ended.")
        }
        let admitted = ConsoleCaller(address: caller.address, token: token, session: session)
        guard session.role >= role else {
            let words = "This needs the role \(role.rawValue); you are \(session.role.rawValue)."
            throw APIProblem(.forbidden, .forbidden, words)
        }
        if route.isChange {
            let given = request.headers[values: .requestToken]
            guard given.count == 1, TokenHash(ofToken: given[0]) == TokenHash(ofToken: session.requestToken) else {
                throw APIProblem(
                    .forbidden,
                    .forbidden,
                    "The header X-CSRF-Token is missing or wrong; reload the page."
                )
            }
        }
        // Opening a stream is limited, too, because the audit log records it.
        let isLimited = route.isChange || route.route.isStream || route.searches(request)
        guard !isLimited || administrators.mayChange(token) else {
            throw APIProblem(
                .tooManyRequests,
                .rateLimited,
                "Too many requests at once; try again in a few seconds.",
                retryAfter: .seconds(2)
            )
        }
        return admitted
    }

    /// Refuses changes that a page of another origin requests.
    static func checkOrigin(_ request: Request, _ route: ConsoleRoute) throws(APIProblem) {
        guard route.isChange else { return }
        let isForeign: Bool
        if let site = request.headers[.fetchSite] {
            isForeign = site != "same-origin" && site != "none"
        } else if let origin = request.headers[.origin] {
            let host = origin.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).last.map(
                String.init
            )
            isForeign = host == nil || host != request.head.authority
        } else {
            // If both fields are missing, the client is not a browser.
            isForeign = false
        }
        guard isForeign else { return }
        throw APIProblem(.forbidden, .forbidden, "Pages of other origins cannot use the console.")
    }

    // MARK: The audit log

    private func note(
        _ route: ConsoleRoute,
        _ caller: ConsoleCaller,
        _ target: String,
        _ result: String,
        code: HermesError.Code? = nil
    ) async {
        // A login records its own result.
        guard route.access != .everybody else { return }
        let session = caller.session ?? caller.token.flatMap { administrators.session($0, isUse: false) }
        // Without a session, there is no name to record, and no limit on the number of entries.
        guard let session else { return }
        await administrators.record(
            AuditEvent(
                who: session.name.rawValue,
                address: caller.address,
                action: route.route.id,
                target: target,
                result: result,
                code: code,
                isRefused: code != nil
            )
        )
    }

    /// The fields of a body that name the object of a request. The audit log shows only these fields. All other
    /// fields, such as passwords, are left out.
    private static let namingFields = ["nick_name", "name", "topic", "scopes", "disabled", "role"]

    /// Returns the values of the path's parameters, before anything is checked.
    private static func target(of context: HTTPContext, _ route: APIRoute) -> String {
        route.pathParameters.compactMap { context.parameters.get($0.name)?.removingPercentEncoding }
            .joined(separator: " ")
    }

    private static func target(of call: APICall, _ route: APIRoute) -> String {
        var words = route.pathParameters.compactMap { call.pathParameters[$0.name] }
        words += route.query.compactMap { call.query[$0.name] }
        for field in namingFields {
            switch call.body[field] {
            case .string(let text): words.append(text)
            case .boolean(let flag): words.append("\(field): \(flag)")
            default: continue
            }
        }
        return words.joined(separator: " ")
    }

    // MARK: Answers

    private func problem(_ error: any Error, _ route: ConsoleRoute) -> APIProblem {
        if let problem = error as? APIProblem { return problem }
        if let error = error as? HermesError, error.code != .internalError {
            // Wrong credentials get 403, because 401 tells the page that there is no session or that the session has
            // ended.
            if error.code == .wrongCredentials { return APIProblem(.forbidden, error.code, error.message) }
            return APIProblem(error)
        }
        logger.error("console request failed", metadata: ["operation": "\(route.route.id)", "error": "\(error)"])
        return APIProblem(.internalServerError, .internalError, "The log has the cause.")
    }

    private static func response(_ answer: APIAnswer, _ status: HTTPResponse.Status) -> Response {
        var headers = Pages.headers("application/json", [.cacheControl: "no-store"])
        for (name, value) in answer.headers {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        guard let text = answer.text ?? answer.body?.text else {
            headers[.contentType] = nil
            return Response(status: status, headers: headers)
        }
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(string: text)))
    }

    static func response(_ problem: APIProblem) -> Response {
        var response = API.response(problem, Pages.headers("", [.cacheControl: "no-store"]))
        // The console authenticates with a cookie, for which this field has no scheme.
        response.headers[.wwwAuthenticate] = nil
        return response
    }
}

extension HTTPField.Name {
    // These names are constants and valid, so the fields after `??` are never used.
    static let requestToken = HTTPField.Name("X-CSRF-Token") ?? .ifMatch
    static let fetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .ifMatch
    /// The fields that proxies add. Only ``forwardedFields`` are read for a client's address.
    static let proxyFields =
        forwardedFields
        + ["X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"].compactMap { HTTPField.Name($0) }
}
#endif
