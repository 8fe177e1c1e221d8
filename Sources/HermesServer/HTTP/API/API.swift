// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire
import Hummingbird
import Logging
import NIOCore

/// The HTTP API for back ends, under `/v1`: registers its routes, with their common handling.
struct API: Sendable {
    /// The largest body of a request, in bytes.
    static let maxBodyBytes = 1 << 20
    private static let methods: [HTTPRequest.Method] = [
        .get, .put, .post, .delete, .patch, .head, .options, .trace, .connect, HTTPRequest.Method("QUERY") ?? .get,
    ]

    let settings: APISettings
    let core: APICore
    let logger: Logger
    let routes: [APIRoute]
    private let limit: APIRateLimit
    private let document: String
    private let failedLogins: FailedLogins

    /// - Parameter logins: the log of failed logins.
    init(_ settings: APISettings, core: APICore, logins: LoginLog, logger: Logger) {
        failedLogins = FailedLogins(gateway: "http", log: logins, logger: logger)
        self.settings = settings
        self.core = core
        self.logger = logger
        limit = APIRateLimit(rate: settings.requestsPerSecond, burst: settings.burst)
        var routes = core.routes
        let document = OpenAPIDocument.document(of: routes + [Self.documentRoute("")]).text
        routes.append(Self.documentRoute(document))
        self.routes = routes
        self.document = document
    }

    private static func documentRoute(_ text: String) -> APIRoute {
        APIRoute(
            method: .get,
            path: "/openapi.json",
            id: "getDocument",
            summary: "This document.",
            scope: nil,
            success: .ok,
            answer: .anyObject,
            handler: { _ in APIAnswer(text: text) }
        )
    }

    /// Registers every route, and the answers to unknown routes.
    ///
    /// - Parameter known: records which keys were accepted or refused.
    func register(on router: Router<HTTPContext>, telling known: KnownKeys) {
        for (path, routes) in Dictionary(grouping: routes, by: \.path) {
            for route in routes {
                router.on(RouterPath("/v1" + path), method: route.method) { request, context in
                    await respond(to: request, context, route, telling: known)
                }
            }
            let allowed = routes.map(\.method)
            let allow = allowed.map(\.rawValue).sorted().joined(separator: ", ")
            for method in Self.methods where !allowed.contains(method) {
                router.on(RouterPath("/v1" + path), method: method) { request, _ in
                    var problem = APIProblem(.methodNotAllowed, .unsupported, "This path takes \(allow).")
                    problem.allow = allow
                    var response = Self.response(problem)
                    // The answer to HEAD has no body (RFC 9110, section 9.3.2).
                    if request.method == .head { response.body = .init() }
                    return response
                }
            }
        }
        for method in Self.methods {
            router.on("/v1/**", method: method) { _, _ in
                Self.response(APIProblem(.notFound, .notFound, "There is no such path; see /v1/openapi.json."))
            }
        }
    }

    // MARK: A request

    private func respond(
        to request: Request,
        _ context: HTTPContext,
        _ route: APIRoute,
        telling known: KnownKeys
    ) async -> Response {
        var headers = HTTPFields()
        do {
            let key = try await authorize(request, context, route, &headers, telling: known)
            let call = try await Self.call(request, context, route, key)
            if let key, let decision = limit.charge(route.requests(call) - 1, to: key.id) {
                Self.write(decision, to: &headers)
            }
            let answer = try await route.handler(call)
            if let stream = answer.stream {
                return Self.response(stream, of: core.events, headers, to: context.channel)
            }
            for (name, value) in answer.headers {
                if let name = HTTPField.Name(name) { headers[name] = value }
            }
            guard let text = answer.text ?? answer.body?.text else {
                return Response(status: route.success, headers: headers)
            }
            headers[.contentType] = "application/json"
            return Response(
                status: route.success,
                headers: headers,
                body: .init(byteBuffer: ByteBuffer(string: text))
            )
        } catch let problem as APIProblem {
            return Self.response(problem, headers)
        } catch let error as HermesError {
            if error.code == .internalError { log(error, route) }
            return Self.response(APIProblem(error), headers)
        } catch {
            log(error, route)
            return Self.response(APIProblem(.internalServerError, .internalError, "The log has the cause."), headers)
        }
    }

    /// Returns an answer that is a stream of events; the stream ends with its connection.
    static func response(
        _ stream: EventStream,
        of events: EventStreams,
        _ headers: HTTPFields,
        to channel: any Channel
    ) -> Response {
        var headers = headers
        headers[.contentType] = HTTPContext.eventStream
        headers[.cacheControl] = "no-store"
        // Without this field, proxies such as nginx buffer events.
        headers[.accelBuffering] = "no"
        channel.closeFuture.whenComplete { _ in events.close(stream) }
        return Response(
            status: .ok,
            headers: headers,
            body: ResponseBody { writer in
                defer { events.close(stream) }
                try await stream.write(to: &writer)
            }
        )
    }

    private func log(_ error: any Error, _ route: APIRoute) {
        logger.error("API request failed", metadata: ["operation": "\(route.id)", "error": "\(error)"])
    }

    /// Authenticates and authorizes the request, before anything else in it is examined.
    private func authorize(
        _ request: Request,
        _ context: HTTPContext,
        _ route: APIRoute,
        _ headers: inout HTTPFields,
        telling known: KnownKeys
    ) async throws -> APIKey? {
        guard let scope = route.scope else { return nil }
        let fields = request.headers[values: .authorization]
        guard fields.count == 1, let secret = Self.bearer(fields[0]) else {
            throw APIProblem(
                .unauthorized,
                .notAuthenticated,
                "Send an API key as \"Authorization: Bearer hk_…\"; create one with \"hermes apikey create\"."
            )
        }
        let client = context.client(of: request.headers)
        let key: APIKey
        do {
            key = try await core.keys.check(secret, from: CommitSource(host: client?.ipAddress))
        } catch {
            if error.code == .invalidToken { known.refused(fields[0]) }
            failedLogins.note(error.code, address: client?.ipAddress)
            throw error
        }
        known.accepted(fields[0])
        let decision = limit.request(of: key.id, now: core.messenger.time.uptime())
        Self.write(decision, to: &headers)
        guard decision.isAllowed else {
            throw APIProblem(
                .tooManyRequests,
                .rateLimited,
                "This key exceeds \(settings.requestsPerSecond) requests a second (http.api.requestsPerSecond).",
                retryAfter: .seconds(decision.secondsToRetry)
            )
        }
        guard key.scopes.contains(scope) else {
            throw APIProblem(
                .forbidden,
                .forbidden,
                "The key \"\(key.name)\" lacks the scope \(scope.rawValue); create one with \"hermes apikey create\"."
            )
        }
        return key
    }

    private static func write(_ decision: APIRateLimit.Decision, to headers: inout HTTPFields) {
        headers[.rateLimitLimit] = String(decision.limit)
        headers[.rateLimitRemaining] = String(decision.remaining)
        headers[.rateLimitReset] = String(decision.secondsToReset)
    }

    /// Returns the key that follows the scheme `Bearer`, which may be in upper or lower case (RFC 9110, section 11.4).
    private static func bearer(_ field: String) -> String? {
        let parts = field.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    /// Reads a request and checks it against its route.
    static func call(
        _ request: Request,
        _ context: HTTPContext,
        _ route: APIRoute,
        _ key: APIKey?
    ) async throws -> APICall {
        var path: [String: String] = [:]
        for parameter in route.pathParameters {
            let raw = context.parameters.get(parameter.name) ?? ""
            guard let text = raw.removingPercentEncoding else {
                throw APIProblem(.badRequest, .invalidArgument, "The path's \(parameter.name) is badly encoded.")
            }
            if let problem = parameter.schema.problem(with: .string(text), at: parameter.name) {
                throw APIProblem(.badRequest, problem.code, "In the path: \(problem.message).")
            }
            path[parameter.name] = text
        }
        if route.isStream, !accepts(HTTPContext.eventStream, request.headers[values: .accept]) {
            throw APIProblem(
                .notAcceptable,
                .unsupported,
                "This path answers with \(HTTPContext.eventStream), which Accept excludes."
            )
        }
        let (query, lists) = try Self.query(request.uri.query ?? "", route)
        var idempotencyKey: String?
        if route.isIdempotent {
            idempotencyKey = try Self.idempotencyKey(request.headers[values: .idempotencyKey])
        }
        let bytes = try await body(of: request, route)
        return APICall(
            key: key,
            pathParameters: path,
            query: query,
            lists: lists,
            body: route.body == nil ? .null : try Self.json(bytes, route),
            bodyBytes: bytes,
            idempotencyKey: idempotencyKey
        )
    }

    private static func idempotencyKey(_ values: [String]) throws(APIProblem) -> String? {
        guard let key = values.first else { return nil }
        let isPlain = key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        guard values.count == 1, (1...APICore.maxIdempotencyKeyBytes).contains(key.utf8.count), isPlain else {
            throw APIProblem(
                .badRequest,
                .ofValue(key.utf8.count, atMost: APICore.maxIdempotencyKeyBytes),
                "Idempotency-Key must be 1 to \(APICore.maxIdempotencyKeyBytes) characters of printable ASCII without blanks."
            )
        }
        return key
    }

    /// Whether the `Accept` fields allow a media type (RFC 9110, section 12.5.1); without these fields, every type is
    /// allowed.
    static func accepts(_ type: String, _ fields: [String]) -> Bool {
        guard !fields.isEmpty else { return true }
        let ranges = ["*/*", "\(type.prefix { $0 != "/" })/*", type]
        // The most specific range decides.
        var best = (specificity: -1, isAccepted: false)
        for part in fields.joined(separator: ",").split(separator: ",") {
            let words = part.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
            guard let range = words.first, let specificity = ranges.firstIndex(of: range) else { continue }
            let quality = words.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            if specificity > best.specificity { best = (specificity, quality > 0) }
        }
        return best.isAccepted
    }

    /// Decodes one parameter of a query, as `name=value`. Returns nil if it is badly encoded.
    static func decoded(_ pair: Substring) -> (name: String, value: String)? {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let value = parts.count > 1 ? parts[1].replacing("+", with: " ") : ""
        guard let name = String(parts[0]).removingPercentEncoding, let value = String(value).removingPercentEncoding
        else { return nil }
        return (name, value)
    }

    /// - Returns: the single parameters, and those that may be repeated.
    private static func query(
        _ text: String,
        _ route: APIRoute
    ) throws(APIProblem) -> ([String: String], [String: [String]]) {
        var query: [String: String] = [:]
        var lists: [String: [String]] = [:]
        for pair in text.split(separator: "&") {
            guard let (name, value) = decoded(pair) else {
                throw APIProblem(.badRequest, .invalidArgument, "The query is badly encoded.")
            }
            guard let parameter = route.query.first(where: { $0.name == name }) else {
                let allowed = route.query.map(\.name).joined(separator: ", ")
                throw APIProblem(
                    .badRequest,
                    .invalidArgument,
                    "There is no query parameter \"\(name.prefix(64))\"; allowed: \(allowed.isEmpty ? "none" : allowed)."
                )
            }
            if let (element, count) = parameter.repeated {
                if let problem = element.problem(with: .string(value), at: name) {
                    throw APIProblem(.badRequest, problem.code, "In the query: \(problem.message).")
                }
                lists[name, default: []].append(value)
                guard lists[name, default: []].count <= count.upperBound else {
                    throw APIProblem(
                        .badRequest,
                        .tooLarge,
                        "The query parameter \(name) is given more than \(count.upperBound) times."
                    )
                }
                continue
            }
            guard query[name] == nil else {
                throw APIProblem(.badRequest, .invalidArgument, "The query parameter \(name) is given twice.")
            }
            let isNumber = if case .integer = parameter.schema { Int64(value) != nil } else { false }
            if let problem = parameter.schema.problem(with: isNumber ? .number(value) : .string(value), at: name) {
                throw APIProblem(.badRequest, problem.code, "In the query: \(problem.message).")
            }
            query[name] = value
        }
        if let missing = route.query.first(where: { $0.isRequired && query[$0.name] == nil }) {
            throw APIProblem(.badRequest, .invalidArgument, "The query parameter \(missing.name) is missing.")
        }
        return (query, lists)
    }

    /// Reads the body, after a check of its length.
    private static func body(of request: Request, _ route: APIRoute) async throws -> [UInt8] {
        guard route.body != nil else { return [] }
        let type = request.headers[.contentType]?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces)
        guard type?.lowercased() == "application/json" else {
            throw APIProblem(
                .unsupportedMediaType,
                .invalidArgument,
                "Send the body as JSON, with \"Content-Type: application/json\"."
            )
        }
        let limit = min(Self.maxBodyBytes, route.body?.maxBytes ?? 0)
        let tooLarge = APIProblem(.contentTooLarge, .tooLarge, "The body is larger than \(limit) bytes.")
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit {
            throw tooLarge
        }
        var bytes: [UInt8] = []
        do {
            for try await chunk in request.body {
                guard bytes.count + chunk.readableBytes <= limit else { throw tooLarge }
                bytes.append(contentsOf: chunk.readableBytesView)
            }
        } catch let problem as APIProblem {
            throw problem
        } catch {
            throw APIProblem(.badRequest, .invalidArgument, "The body is incomplete.")
        }
        return bytes
    }

    /// The number of values that the parser reads in addition to those that the body's schema allows. With them, the
    /// answer can name an unknown field.
    private static let strayValues = 64

    private static func json(_ bytes: [UInt8], _ route: APIRoute) throws(APIProblem) -> JSON {
        let value: JSON
        do throws(JSONParser.Failure) {
            value = try JSONParser.parse(bytes, maxValues: route.body.map { $0.maxValues + strayValues } ?? 0)
        } catch {
            throw APIProblem(
                .badRequest,
                .invalidArgument,
                "The body is not JSON: \(error.reason), at byte \(error.offset)."
            )
        }
        if let problem = route.body?.problem(with: value, at: "the body") {
            throw APIProblem(HermesError(problem.code, "\(problem.message)."))
        }
        return value
    }

    static func response(_ problem: APIProblem, _ headers: HTTPFields = HTTPFields()) -> Response {
        var headers = headers
        headers[.contentType] = "application/problem+json"
        if problem.status == .unauthorized { headers[.wwwAuthenticate] = "Bearer realm=\"hermes\"" }
        if let allow = problem.allow { headers[.allow] = allow }
        if let retryAfter = problem.retryAfter {
            headers[.retryAfter] = String(max(1, Int((retryAfter / .seconds(1)).rounded(.up))))
        }
        return Response(
            status: problem.status,
            headers: headers,
            body: .init(byteBuffer: ByteBuffer(string: problem.document.text))
        )
    }
}

extension HTTPField.Name {
    // These names are constants and valid, so the fields after `??` are never used.
    static let rateLimitLimit = HTTPField.Name("RateLimit-Limit") ?? .retryAfter
    static let rateLimitRemaining = HTTPField.Name("RateLimit-Remaining") ?? .retryAfter
    static let rateLimitReset = HTTPField.Name("RateLimit-Reset") ?? .retryAfter
    static let accelBuffering = HTTPField.Name("X-Accel-Buffering") ?? .cacheControl
    static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .ifMatch
}
