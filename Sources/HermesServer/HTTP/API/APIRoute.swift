// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// One operation of the API. Everything about it is said here once: it is registered, its requests are checked and the
/// OpenAPI document is written from it.
struct APIRoute: Sendable {
    /// What comes in the path or behind the question mark.
    struct Parameter: Sendable {
        let name: String
        let schema: APISchema
        let isRequired: Bool
        let summary: String

        init(_ name: String, _ schema: APISchema, required: Bool = false, _ summary: String) {
            self.name = name
            self.schema = schema
            isRequired = required
            self.summary = summary
        }
    }

    typealias Handler = @Sendable (APICall) async throws -> APIAnswer

    let method: HTTPRequest.Method
    /// Behind `/v1`, with parameters in braces.
    let path: String
    /// Unique, for generators of clients.
    let id: String
    let summary: String
    /// What a key must be allowed; nil: no key is needed.
    let scope: APIScope?
    var pathParameters: [Parameter] = []
    var query: [Parameter] = []
    /// What the body must be; nil: it has none.
    var body: APISchema?
    /// Whether the header `Idempotency-Key` is looked at.
    var isIdempotent = false
    /// The status of a success, and what its body is; nil: it has none.
    let success: HTTPResponse.Status
    let answer: APISchema?
    /// What else may be answered, beside what every route may.
    var failures: [HTTPResponse.Status] = []
    let handler: Handler

    /// The statuses of all failures, ascending.
    var allFailures: [HTTPResponse.Status] {
        var all = failures + [.badRequest, .internalServerError, .serviceUnavailable]
        if scope != nil { all += [.unauthorized, .forbidden, .tooManyRequests] }
        if body != nil { all += [.contentTooLarge, .unsupportedMediaType, .unprocessableContent] }
        if isIdempotent { all += [.conflict] }
        return Set(all.map(\.code)).sorted().map { HTTPResponse.Status(code: $0) }
    }

    /// The parameter of an account in the path.
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
    /// By name; present if the route says so.
    let pathParameters: [String: String]
    let query: [String: String]
    /// `.null` where the route has no body.
    let body: JSON
    /// The body as it was sent.
    let bodyBytes: [UInt8]
    let idempotencyKey: String?

    /// A number of the query, which was checked.
    func number(_ name: String) -> Int64? { query[name].flatMap { Int64($0) } }
}

/// What a route answers if all went well.
struct APIAnswer: Sendable {
    let body: JSON?
    var headers: [(name: String, value: String)] = []
    /// The text of the body where it is there already.
    var text: String?

    init(_ body: JSON) { self.body = body }

    init(text: String) {
        body = nil
        self.text = text
    }

    private init() { body = nil }

    /// Without a body.
    static let empty = APIAnswer()
}
