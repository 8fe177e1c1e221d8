// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// The reason why a request was not carried out, as in RFC 9457, with a number from docs/errors.md.
struct APIProblem: Error, Sendable {
    let status: HTTPResponse.Status
    /// A number of docs/errors.md.
    let code: HermesError.Code
    /// The error in this request, and its remedy.
    let detail: String
    /// The time after which a retry makes sense, if it is known.
    let retryAfter: Duration?
    /// The methods that the path accepts; only for the status 405.
    var allow: String?

    init(_ status: HTTPResponse.Status, _ code: HermesError.Code, _ detail: String, retryAfter: Duration? = nil) {
        self.status = status
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
    }

    /// Reports an error of the core.
    init(_ error: HermesError) {
        self.init(Self.status(of: error.code), error.code, error.message, retryAfter: error.retryAfter)
    }

    private static func status(of code: HermesError.Code) -> HTTPResponse.Status {
        switch code {
        case .notAuthenticated, .invalidToken: .unauthorized
        case .forbidden, .accountDisabled, .invitationRequired: .forbidden
        case .notFound: .notFound
        case .nameTaken, .clientIDConflict, .deviceLimitReached: .conflict
        case .tooLarge: .contentTooLarge
        case .invalidArgument, .unsupported: .unprocessableContent
        case .rateLimited, .loginDelayed: .tooManyRequests
        case .overloaded, .storageUnavailable, .shuttingDown, .inboxFull, .tooMuchUnread, .quotaExceeded:
            .serviceUnavailable
        default: .internalServerError
        }
    }

    /// The body of the answer.
    var document: JSON {
        [
            "type": .string("urn:hermes:error:\(code.rawValue)"),
            "title": .string(status.reasonPhrase),
            "status": .integer(status.code),
            "detail": .string(detail),
            "code": .integer(code.rawValue),
        ]
    }

    /// The schema of ``document``.
    static let schema = APISchema.named(
        "Problem",
        .object([
            APISchema.Field("type", .string(length: 1 ... .max), required: true, "The code as a URN."),
            APISchema.Field("title", .string(length: 0 ... .max), required: true, "The status as text."),
            APISchema.Field("status", .integer(400...599), required: true, "The status."),
            APISchema.Field("detail", .string(length: 0 ... .max), required: true, "The error and its remedy."),
            APISchema.Field("code", .integer(1...9999), required: true, "A number of docs/errors.md."),
        ])
    )
}
