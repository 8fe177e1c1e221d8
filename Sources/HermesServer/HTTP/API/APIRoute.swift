// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// One operation of the API. Its registration, the check of its requests and its part of the OpenAPI document all
/// follow from this definition.
struct APIRoute: Sendable {
    /// A parameter in the path or the query.
    struct Parameter: Sendable {
        let name: String
        let schema: APISchema
        let isRequired: Bool
        let summary: String

        /// For a query parameter that may be repeated: the schema of one value, and the allowed number of values. Nil
        /// for all other parameters.
        var repeated: (element: APISchema, count: ClosedRange<Int>)? {
            if case .array(let element, let count) = schema { (element, count) } else { nil }
        }

        init(_ name: String, _ schema: APISchema, required: Bool = false, _ summary: String) {
            self.name = name
            self.schema = schema
            isRequired = required
            self.summary = summary
        }
    }

    typealias Handler = @Sendable (APICall) async throws -> APIAnswer

    let method: HTTPRequest.Method
    /// The path after a prefix such as `/v1`, with parameters in braces.
    let path: String
    /// A unique name of the operation, for client generators.
    let id: String
    let summary: String
    /// The scope that a key needs; nil if no key is needed.
    let scope: APIScope?
    var pathParameters: [Parameter] = []
    var query: [Parameter] = []
    /// The schema of the body; nil if there is no body.
    var body: APISchema?
    /// Whether the header `Idempotency-Key` is used.
    var isIdempotent = false
    /// The status of a success. ``answer`` is the schema of its body; nil if the success has no body.
    let success: HTTPResponse.Status
    let answer: APISchema?
    /// The failures that are possible in addition to the failures of every route.
    var failures: [HTTPResponse.Status] = []
    /// Whether a success is an endless stream of events.
    var isStream = false
    /// The number of requests that are charged to the key's rate for a call.
    var requests: @Sendable (APICall) -> Int = { _ in 1 }
    let handler: Handler

    /// The status with which the port refuses a request whose head is too large, because of a long query or many
    /// fields. Such a request does not reach a route, and the answer is plain text.
    static let headTooLarge = HTTPResponse.Status.requestHeaderFieldsTooLarge

    /// The statuses of all failures, ascending.
    var allFailures: [HTTPResponse.Status] {
        var all = failures + [.badRequest, .internalServerError, .serviceUnavailable, Self.headTooLarge]
        if scope != nil { all += [.unauthorized, .forbidden, .tooManyRequests] }
        if body != nil { all += [.contentTooLarge, .unsupportedMediaType, .unprocessableContent] }
        if isIdempotent { all += [.conflict] }
        return Set(all.map(\.code)).sorted().map { HTTPResponse.Status(code: $0) }
    }

    /// The parameter in the path that names an account.
    static let user = Parameter(
        "user",
        .user,
        required: true,
        "A uid, or a nick name (with @ before it if it could be a uid)."
    )
}

/// A request that was checked against its route.
struct APICall: Sendable {
    let key: APIKey?
    /// The values of the path's parameters, by name. All parameters of the route are present.
    let pathParameters: [String: String]
    let query: [String: String]
    /// The values of parameters that may be repeated.
    var lists: [String: [String]] = [:]
    /// The parsed body; `.null` if the route has no body.
    let body: JSON
    /// The bytes of the body as they were sent.
    let bodyBytes: [UInt8]
    let idempotencyKey: String?
    #if Pages
    /// The administrator who makes the request in the console; nil if a back end makes it.
    var console: ConsoleCaller?
    #endif

    /// Returns the value of a numeric parameter of the query. The parameter has already been checked.
    func number(_ name: String) -> Int64? { query[name].flatMap { Int64($0) } }
}

/// A route's answer to a successful request.
struct APIAnswer: Sendable {
    let body: JSON?
    var headers: [(name: String, value: String)] = []
    /// The text of the body, if the route has written it already.
    var text: String?
    /// The name of the object, if the request gave only its number; for the audit log.
    var found: String?
    /// The stream of events that is the body.
    var stream: EventStream?

    init(_ body: JSON) { self.body = body }

    init(stream: EventStream) {
        body = nil
        self.stream = stream
    }

    init(text: String) {
        body = nil
        self.text = text
    }

    private init() { body = nil }

    /// An answer without a body.
    static let empty = APIAnswer()
}
