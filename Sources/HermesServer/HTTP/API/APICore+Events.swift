// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Events as they happen.
extension APICore {
    private static let maxFilters = 100

    private static let filters = APIRoute.Parameter(
        "topic",
        .array(
            .text(
                bytes: 1...TopicName.maxBytes,
                APISchema.StringForm(
                    pattern: "^(?!\\$share/)[^\\u0000]+$",
                    meaning: "a topic filter (docs/mqtt.md) that does not begin with $share/"
                ) { TopicFilter($0) != nil && !SharedFilter.isShared($0) }
            ),
            count: 1...maxFilters
        ),
        "A filter for the topics whose publications are wanted; may be repeated. Needs the scope topics:read, too."
    )

    private static let kinds = APIRoute.Parameter(
        "kind",
        .array(.choice(ServerEvent.Kind.allCases.map(\.rawValue)), count: 1...ServerEvent.Kind.allCases.count),
        "A kind of event of the server that is wanted; may be repeated."
    )

    var eventRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/events",
                id: "streamEvents",
                summary: "Follow publications and events of the server while they happen, as Server-Sent Events.",
                scope: .eventsRead,
                query: [Self.filters, Self.kinds],
                success: .ok,
                answer: .string(length: 0 ... .max),
                failures: [.notAcceptable],
                isStream: true,
                handler: streamEvents
            )
        ]
    }

    private func streamEvents(_ call: APICall) async throws -> APIAnswer {
        guard let key = call.key else { throw APIProblem(.unauthorized, .notAuthenticated, "Send an API key.") }
        var topics: [TopicFilter] = []
        for filter in call.lists["topic", default: []].compactMap({ TopicFilter($0) }) where !topics.contains(filter) {
            topics.append(filter)
        }
        let kinds = Set(call.lists["kind", default: []].compactMap(ServerEvent.Kind.init(rawValue:)))
        guard !topics.isEmpty || !kinds.isEmpty else {
            throw APIProblem(
                .badRequest,
                .invalidArgument,
                "Say what is wanted: topic=FILTER for publications, kind=NAME for events of the server."
            )
        }
        guard topics.isEmpty || key.scopes.contains(.topicsRead) else {
            throw APIProblem(
                .forbidden,
                .forbidden,
                "The key \"\(key.name)\" lacks the scope topics:read, which publications need."
            )
        }
        let rules = access.current.bound(to: ClientIdentity(apiKey: key.name))
        // As with subscriptions of MQTT, a filter that may match a readable topic is granted, and the topic of each
        // publication is checked later.
        for filter in topics where rules.access(to: filter) == .none {
            throw APIProblem(
                .forbidden,
                .forbidden,
                "The key \"\(key.name)\" may read nothing of \"\(filter.rawValue)\" (access.rules)."
            )
        }
        guard !kinds.contains(.messageUndelivered) || events.findsUndelivered else {
            throw APIProblem(
                .badRequest,
                .unsupported,
                "Only webhooks find message.undelivered: set webhooks.url, and name it in webhooks.events."
            )
        }
        let shapes = ShapeLease(messenger.durable.shapes, of: Self.payer(key))
        for filter in topics where !shapes.take(TopicShape(of: filter)) {
            throw APIProblem(
                .serviceUnavailable,
                .quotaExceeded,
                "\"\(filter.rawValue)\" has wildcards in many levels, and all clients together have reached the limit "
                    + "of such filters. Use fewer wildcards."
            )
        }
        let stream = try await events.open(for: key, topics: topics, kinds: kinds, shapes: shapes)
        return APIAnswer(stream: stream)
    }

    /// Returns the source under which the filters of a key are counted. No ``NickName`` contains U+0001, the first
    /// character of the source, so no client has this source.
    static func payer(_ key: APIKey) -> CommitSource { .subject("\u{1}key \(key.name)") }
}
