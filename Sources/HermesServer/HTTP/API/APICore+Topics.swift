// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire
import NIOCore

/// Topics.
extension APICore {
    private typealias Field = APISchema.Field

    static let topicName = APISchema.text(
        bytes: 1...TopicName.maxBytes,
        APISchema.StringForm(
            pattern: "^(?!\\$|hermes/)[^#+\\u0000]+$",
            meaning: "a topic without + and #, that does not begin with $ or hermes/"
        ) { text in
            TopicName(text) != nil && !text.utf8.starts(with: "$".utf8) && !text.utf8.starts(with: "hermes/".utf8)
        }
    )

    /// MQTT stores the length of a text in 16 bits, and forbids U+0000 [MQTT-1.5.4-2].
    private static let contentType = APISchema.text(
        bytes: 1...Int(UInt16.max),
        APISchema.StringForm(pattern: "^[^\\u0000]+$", meaning: "a text without U+0000") { !$0.utf8.contains(0) }
    )

    private static let topic = APIRoute.Parameter("topic", topicName, required: true, "The topic.")

    var topicRoutes: [APIRoute] {
        [
            APIRoute(
                method: .post,
                path: "/topics/publish",
                id: "publish",
                summary: "Publish to a topic.",
                scope: .topicsWrite,
                body: .object([
                    Field("topic", Self.topicName, required: true, "The topic."),
                    Field(
                        "payload",
                        Self.payload,
                        required: true,
                        "The body; an empty text with retain removes the retained message."
                    ),
                    Field("qos", .integer(0...2), "The QoS; 1 if absent."),
                    Field("retain", .boolean, "Whether it is retained for later subscribers."),
                    Field("ttl_seconds", .integer(1...Int64(UInt32.max)), "The time after which it is not delivered."),
                    Field("content_type", Self.contentType, "The content type, for MQTT 5 subscribers."),
                ]),
                success: .accepted,
                answer: APISchema.named("Publication", .object([Self.retained])),
                handler: publish
            ),
            APIRoute(
                method: .get,
                path: "/topics/retained",
                id: "getRetained",
                summary: "The retained message of a topic.",
                scope: .topicsRead,
                query: [Self.topic],
                success: .ok,
                answer: .object([
                    Field("topic", .string(length: 1 ... .max), required: true, "The topic."),
                    Field("qos", .integer(0...2), required: true, "The QoS of the publication."),
                    Field("text", .string(length: 0 ... .max), "The body, if it is UTF-8 text."),
                    Field("base64", .string(length: 0 ... .max), "The body otherwise, in base64."),
                    Field("published_at_ms", Self.time, required: true, "In milliseconds since 1970."),
                ]),
                failures: [.notFound],
                handler: getRetained
            ),
            APIRoute(
                method: .delete,
                path: "/topics/retained",
                id: "deleteRetained",
                summary: "Remove the retained message of a topic, if any.",
                scope: .topicsWrite,
                query: [Self.topic],
                success: .noContent,
                answer: nil,
                handler: deleteRetained
            ),
        ]
    }

    /// The field of an answer that says whether a publication is retained.
    static let retained = APISchema.Field(
        "retained",
        .boolean,
        "If retain was true: whether the publication is retained now. False: a limit of mqtt.retained was reached, so "
            + "it was only delivered."
    )

    /// Bytes in one of three forms: text, base64 or JSON.
    static let payload = APISchema.oneMember([
        Field("text", .string(length: 0 ... .max), "As it is."),
        Field("base64", .string(length: 0 ... .max, base64), "Any bytes."),
        Field("json", .any, "A JSON value."),
    ])

    static func bytes(of payload: JSON) -> ByteBuffer {
        if let text = payload["text"]?.string { return ByteBuffer(string: text) }
        if let text = payload["base64"]?.string { return ByteBuffer(bytes: Data(base64Encoded: text) ?? Data()) }
        return ByteBuffer(string: payload["json"]?.text ?? "")
    }

    private static let base64 = APISchema.StringForm(
        pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        meaning: "base64"
    ) { Data(base64Encoded: $0) != nil }

    private func publish(_ call: APICall) async throws -> APIAnswer {
        guard let topic = call.body["topic"]?.string.flatMap({ TopicName($0) }), let payload = call.body["payload"]
        else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "topic or payload is missing.")
        }
        try check(call, may: .publish, topic)
        let bytes = Self.bytes(of: payload)
        try ApplicationTopics.check(topic, bytes)
        let now = messenger.time.now()
        let contentType = call.body["content_type"]?.string ?? (payload["json"] == nil ? nil : "application/json")
        let expiresAt = call.body["ttl_seconds"]?.integer.map { now.advanced(by: .seconds($0)) }
        let isText = payload["base64"] == nil
        let isRetained = try await publisher.publish(
            Publication(
                topic: topic,
                payload: bytes,
                kind: Publication.plainKind,
                qos: call.body["qos"]?.integer.flatMap { UInt8(exactly: $0) }.flatMap(QoS.init(rawValue:))
                    ?? .atLeastOnce,
                retain: call.body["retain"]?.boolean ?? false,
                details: PublicationDetails(expiresAt: expiresAt, payloadIsUTF8: isText, contentType: contentType)
            )
        )
        return APIAnswer(.members(["retained": isRetained.map(JSON.boolean)]))
    }

    private func getRetained(_ call: APICall) async throws -> APIAnswer {
        if let topic = call.query["topic"].flatMap({ TopicName($0) }) { try check(call, may: .subscribe, topic) }
        guard let topic = call.query["topic"].flatMap({ TopicName($0) }),
            let found = messenger.retained.publication(of: topic), !found.hasExpired(at: messenger.time.now())
        else { throw APIProblem(.notFound, .notFound, "Nothing is retained for this topic.") }
        let text = String(validating: found.payload.readableBytesView, as: UTF8.self)
        return APIAnswer(
            .members([
                "topic": .string(topic.rawValue),
                "qos": .integer(found.qos.rawValue),
                "text": text.map(JSON.string),
                "base64": text == nil ? .string(Data(found.payload.readableBytesView).base64EncodedString()) : nil,
                "published_at_ms": .integer(found.publishedAt.rawValue),
            ])
        )
    }

    private func deleteRetained(_ call: APICall) async throws -> APIAnswer {
        guard let topic = call.query["topic"].flatMap({ TopicName($0) }) else {
            throw APIProblem(.badRequest, .invalidArgument, "The query parameter topic is missing.")
        }
        try check(call, may: .publish, topic)
        try await publisher.removeRetained(of: topic)
        return .empty
    }
}
