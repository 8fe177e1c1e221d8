// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire
import NIOCore

/// Watching topics, and listing retained publications. Publishing, and reading or removing a single retained
/// publication, are operations of the HTTP API.
extension ConsoleCore {
    private static let maxPage = 200
    /// The number of bytes of a payload that lists show.
    private static let shownBytes = 256

    private static let filter = APIRoute.Parameter(
        "filter",
        .string(
            length: 1...1_024,
            APISchema.StringForm(
                pattern: "^(?!\\$share/)[^\\u0000]+$",
                meaning: "a topic filter (docs/mqtt.md) that does not begin with $share/"
            ) { TopicFilter($0) != nil && !SharedFilter.isShared($0) }
        ),
        required: true,
        "The filter for the topics."
    )

    var topicRoutes: [ConsoleRoute] {
        [
            ConsoleRoute(
                route: APIRoute(
                    method: .get,
                    path: "/topics/watch",
                    id: "watchTopics",
                    summary: "Follow what is published to topics, as Server-Sent Events.",
                    scope: nil,
                    query: [Self.filter],
                    success: .ok,
                    answer: .string(length: 0 ... .max),
                    isStream: true,
                    handler: watchTopics
                ),
                access: .role(.operator),
                isPolled: true
            ),
            view(
                "/topics/retained/list",
                "listRetained",
                "The retained publications that a filter matches, page by page.",
                .operator,
                query: [
                    Self.filter,
                    APIRoute.Parameter("after", .integer(0 ... .max), "\"next\" of the previous page."),
                    APIRoute.Parameter(
                        "limit",
                        .integer(1...Int64(Self.maxPage)),
                        "The most publications in a page; 50 if absent."
                    ),
                ],
                listRetained
            ),
        ]
    }

    private func filter(of call: APICall) throws(APIProblem) -> TopicFilter {
        guard let filter = call.query["filter"].flatMap({ TopicFilter($0) }) else {
            throw APIProblem(.badRequest, .invalidArgument, "This is not a topic filter (docs/mqtt.md).")
        }
        return filter
    }

    private func watchTopics(_ call: APICall) async throws -> APIAnswer {
        APIAnswer(stream: try await stream(of: try filter(of: call), to: call))
    }

    /// Opens a stream for an operator. The stream ends when the administrator is no longer an operator.
    func stream(of filter: TopicFilter, to call: APICall) async throws -> EventStream {
        guard let token = call.console?.token else {
            throw APIProblem(.unauthorized, .notAuthenticated, "Log in to the console; the session has ended.")
        }
        return try await api.events.open(watching: filter) { [administrators] in
            // A change of the role ends the session, and a caller without a session counts as a viewer.
            (administrators.session(token, isUse: false)?.role ?? .viewer) >= .operator
        }
    }

    private func listRetained(_ call: APICall) async throws -> APIAnswer {
        let (found, next) = api.messenger.retained.page(
            of: try filter(of: call),
            behind: Int(clamping: call.number("after") ?? 0),
            now: api.messenger.time.now(),
            limit: Int(call.number("limit") ?? 50)
        )
        return APIAnswer([
            "retained": .array(found.map(Self.document)),
            "next": next.map { .integer($0) } ?? .null,
        ])
    }

    private static func document(_ publication: StoredPublication) -> JSON {
        let shown = publication.payload.readableBytesView.prefix(shownBytes)
        let text = shownText(shown, isCut: shown.count < publication.payload.readableBytes)
        return .members([
            "topic": .string(publication.topic.rawValue),
            "qos": .integer(publication.qos.rawValue),
            "bytes": .integer(publication.payload.readableBytes),
            "text": text.map(JSON.string),
            "base64": text == nil ? .string(Data(shown).base64EncodedString()) : nil,
            "published_at_ms": .integer(publication.publishedAt.rawValue),
            "expires_at_ms": time(publication.details?.expiresAt),
        ])
    }

    /// Returns a payload as text; nil if it is not text.
    ///
    /// - Parameter isCut: whether the payload may end within a character. If so, the beginning of that character is
    ///   left out.
    static func shownText(_ bytes: some BidirectionalCollection<UInt8>, isCut: Bool) -> String? {
        // A character has at most four bytes.
        for rest in 0...(isCut ? 3 : 0) {
            if let text = String(validating: bytes.dropLast(rest), as: UTF8.self) { return text }
        }
        return nil
    }
}
#endif
