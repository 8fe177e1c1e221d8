// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire

/// `POST /v1/push`.
extension APICore {
    private typealias Field = APISchema.Field

    var pushRoutes: [APIRoute] {
        [
            APIRoute(
                method: .post,
                path: "/push",
                id: "push",
                summary: "Push to users, a device, a topic, a room or everyone. It is accepted at once; those who are "
                    + "connected get it within moments, others when they connect.",
                scope: .push,
                body: Self.pushRequest,
                isIdempotent: true,
                success: .accepted,
                answer: Self.pushAnswer,
                failures: [.notFound],
                requests: Self.requests,
                handler: push
            )
        ]
    }

    private static let pushRequest = APISchema.named(
        "PushRequest",
        .object([
            Field("to", pushTarget, required: true, "The recipients."),
            Field("title", .string(length: 0...PushContent.maxTitleCharacters), "The title."),
            Field("body", .string(length: 0...PushContent.maxBodyCharacters), "What it says."),
            Field("data", .anyObject, "The application's own data; at most 16 KiB as JSON."),
            Field("message", typedMessage, "The application's own message: its type and its bytes."),
            Field(
                "collapse_key",
                collapseKey,
                "Replaces an earlier push with the same key that is still in the inbox."
            ),
            Field("ttl_seconds", .integer(1...315_360_000), "The time after which it is not delivered."),
            Field(
                "priority",
                .choice(["normal", "high"]),
                "How soon a sleeping device is woken; normal if absent."
            ),
        ])
    )

    private static let typedMessage = APISchema.named(
        "TypedMessage",
        .object([
            Field(
                "type",
                .text(
                    bytes: 1...TypedMessage.maxTypeBytes,
                    APISchema.StringForm(
                        pattern: "^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$",
                        meaning: "the full name of a protobuf message",
                        isMet: TypedMessage.isTypeName
                    )
                ),
                required: true,
                "The full name of its type, for example shop.OrderShipped."
            ),
            Field(
                "bytes",
                // Base64 has four characters for three bytes.
                .text(
                    bytes: 0...(TypedMessage.maxBytes + 2) / 3 * 4,
                    APISchema.StringForm(
                        pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                        meaning: "base64"
                    ) { Data(base64Encoded: $0) != nil }
                ),
                required: true,
                "The message in base64; at most 16 KiB of bytes."
            ),
        ])
    )

    private static let collapseKey = APISchema.text(
        bytes: 1...PushContent.maxCollapseKeyBytes,
        APISchema.StringForm(pattern: "^[!-~]+$", meaning: "printable ASCII without blanks") { text in
            text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    )

    private static let pushTarget = APISchema.named(
        "PushTarget",
        .oneMember([
            Field("user", .user, "All devices of one account."),
            Field("users", .array(.user, count: 1...PushService.maxRecipients), "All devices of several accounts."),
            Field(
                "device",
                .object([
                    Field("user", .user, required: true, "Whose device."),
                    Field("device_id", deviceID, required: true, "The device; the others show nothing."),
                ]),
                "One device of an account."
            ),
            Field(
                "topic",
                .object([
                    Field("name", topicName, required: true, "The topic."),
                    Field(
                        "format",
                        .choice(["json", "protobuf"]),
                        "The format of the payload, which is a hermes.v1.Push; json if absent."
                    ),
                    Field("retain", .boolean, "Whether it is retained for later subscribers."),
                ]),
                "The subscribers of a topic."
            ),
            Field("room", roomName, "Everybody in a room now; a notice, not kept."),
            Field("everyone", .boolean, "Every account; must be true."),
        ])
    )

    /// The largest number of names without an account that an answer lists. There is a limit because the answer is
    /// stored for repeated requests.
    private static let maxUnknown = 100
    /// The number of names that are looked up for the cost of one request.
    private static let namesPerRequest = 100

    /// Returns the number of requests that a push counts as.
    static func requests(of push: APICall) -> Int {
        1 + (push.body["to"]?["users"]?.array?.count ?? 0) / namesPerRequest
    }

    private static let pushAnswer = APISchema.named(
        "PushAnswer",
        .object([
            Field("id", .string(length: 26...26), required: true, "The push's id."),
            Field("recipients", .integer(0 ... .max), "The number of accounts or members, if known."),
            Field(
                "unknown",
                .array(.string(length: 1...APIUserSelector.maxBytes), count: 0...maxUnknown),
                "Names in users without an account; the first \(maxUnknown)."
            ),
            Field("unknown_count", .integer(0 ... .max), "The number of all such names; absent if there are none."),
            retained,
        ])
    )

    private func push(_ call: APICall) async throws -> APIAnswer {
        guard let to = call.body["to"], case .object(let members) = to, let target = members.first else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "to is missing.")
        }
        switch target.name {
        case "user":
            return try await push(call, toUsers: [target.value], mustExist: true)
        case "users":
            return try await push(call, toUsers: target.value.array ?? [], mustExist: false)
        case "device":
            guard let device = target.value["device_id"]?.string.flatMap({ DeviceID($0) }) else {
                throw APIProblem(.unprocessableContent, .invalidArgument, "to.device.device_id is missing.")
            }
            return try await push(call, toUsers: [target.value["user"] ?? .null], mustExist: true, device: device)
        case "everyone":
            guard target.value.boolean == true else {
                throw APIProblem(.unprocessableContent, .invalidArgument, "to.everyone must be true.")
            }
            let push = try pushDraft(call)
            return try await send(push, to: .everyone, call, ["id": .string(push.id.description)])
        case "room":
            return try await push(call, toRoom: target.value.string ?? "")
        default:
            return try await push(call, toTopic: target.value)
        }
    }

    private func pushDraft(_ call: APICall, device: DeviceID? = nil) throws(HermesError) -> Push {
        let content = PushContent(
            title: call.body["title"]?.string ?? "",
            body: call.body["body"]?.string ?? "",
            dataJSON: call.body["data"]?.text ?? "",
            collapseKey: call.body["collapse_key"]?.string ?? "",
            message: Self.message(call.body["message"])
        )
        return try messenger.pushes.make(
            content,
            priority: call.body["priority"]?.string == "high" ? .high : .normal,
            expiresAfter: call.body["ttl_seconds"]?.integer.map { .seconds($0) },
            device: device
        )
    }

    private static func message(_ value: JSON?) -> TypedMessage? {
        guard let type = value?["type"]?.string,
            let bytes = value?["bytes"]?.string.flatMap({ Data(base64Encoded: $0) })
        else { return nil }
        return TypedMessage(type: type, bytes: Array(bytes))
    }

    // MARK: Users

    private func push(
        _ call: APICall,
        toUsers values: [JSON],
        mustExist: Bool,
        device: DeviceID? = nil
    ) async throws -> APIAnswer {
        do {
            return try await pushOnce(call, toUsers: values, mustExist: mustExist, device: device)
        } catch let problem as APIProblem where problem.status == .notFound {
            // An account may have been renamed or deleted since the first request with this idempotency key.
            guard let claim = Self.claim(call, .null), let first = try await messenger.pushes.answer(to: claim) else {
                throw problem
            }
            return Self.repeated(first)
        }
    }

    private func pushOnce(
        _ call: APICall,
        toUsers values: [JSON],
        mustExist: Bool,
        device: DeviceID?
    ) async throws -> APIAnswer {
        let push = try pushDraft(call, device: device)
        let (users, unknown) = try await find(values)
        if let device, let user = users.first {
            let devices = try await messenger.accounts.devices(of: user)
            guard devices.contains(where: { $0.description.id == device }) else {
                throw APIProblem(.notFound, .notFound, "The account has no device \"\(device)\".")
            }
        }
        guard !users.isEmpty else {
            if mustExist { _ = try await account(values.first.flatMap { APIUserSelector($0) }) }
            throw APIProblem(.notFound, .notFound, "None of the users has an account.")
        }
        let answer = JSON.members([
            "id": .string(push.id.description),
            "recipients": .integer(users.count),
            "unknown": unknown.isEmpty ? nil : .array(unknown.prefix(Self.maxUnknown).map(JSON.string)),
            "unknown_count": unknown.isEmpty ? nil : .integer(unknown.count),
        ])
        return try await send(push, to: .users(users), call, answer)
    }

    /// Returns the named accounts, each once and in order, and the names without an account.
    private func find(_ values: [JSON]) async throws -> (users: [UserID], unknown: [String]) {
        let selectors = values.compactMap { APIUserSelector($0) }
        guard selectors.count == values.count else { throw Self.badSelector }
        // Numbers are looked up together, names one by one.
        let existing = try await messenger.pushes.existing(
            selectors.compactMap { if case .id(let user) = $0.key { user } else { nil } }
        )
        var users: [UserID] = []
        var known: Set<UserID> = []
        var unknown: [String] = []
        for selector in selectors {
            let user: UserID? =
                switch selector.key {
                case .id(let user): existing.contains(user) ? user : nil
                case .nickName(let name): try await messenger.accounts.account(.nickName(name))?.id
                case nil: nil
                }
            guard let user else {
                unknown.append(selector.text)
                continue
            }
            if known.insert(user).inserted { users.append(user) }
        }
        return (users, unknown)
    }

    private func send(
        _ push: Push,
        to target: PushJob.Target,
        _ call: APICall,
        _ answer: JSON
    ) async throws -> APIAnswer {
        Self.messageCame()
        let claim = Self.claim(call, answer)
        if let first = try await messenger.pushes.send(push, to: target, claim: claim) { return Self.repeated(first) }
        return APIAnswer(answer)
    }

    // MARK: Pushes that are not stored

    private func push(_ call: APICall, toRoom name: String) async throws -> APIAnswer {
        guard let room = RoomName(name) else { throw APIProblem(.unprocessableContent, .invalidArgument, Self.badRoom) }
        for name in ["data", "message", "collapse_key", "ttl_seconds", "priority"] where call.body[name] != nil {
            throw APIProblem(
                .unprocessableContent,
                .invalidArgument,
                "A room gets a notice with title and body; leave out \(name)."
            )
        }
        let push = try pushDraft(call)
        let title = push.content.title.isEmpty ? "" : "[\(push.content.title)] "
        let text = title + push.content.body
        guard !text.isEmpty else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "title and body are empty.")
        }
        try RoomLimits.check(text: text)
        try check(call, may: .publish, room.topic)
        let members = await topics.subscriberCount(of: room.topic)
        let answer: JSON = ["id": .string(push.id.description), "recipients": .integer(members)]
        return try await once(call, answer) { _ in
            try await publisher.publish(.notice(text, in: room))
        }
    }

    private func push(_ call: APICall, toTopic target: JSON) async throws -> APIAnswer {
        guard let topic = target["name"]?.string.flatMap({ TopicName($0) }) else {
            throw APIProblem(.unprocessableContent, .invalidArgument, "to.topic.name is missing.")
        }
        try check(call, may: .publish, topic)
        let push = try pushDraft(call)
        let answer: JSON = ["id": .string(push.id.description)]
        return try await once(call, answer) { id in
            let publication = TopicPush(
                id.map { Push(push, id: $0) } ?? push,
                to: topic,
                expires: call.body["ttl_seconds"] != nil,
                isJSON: target["format"]?.string != "protobuf",
                retains: target["retain"]?.boolean ?? false
            )
            return try await publisher.publish(.push(publication))
        }
    }

    /// Publishes, unless an earlier request with the same idempotency key has already published.
    ///
    /// - Parameter publish: publishes, and returns whether the push was retained; nil if the request did not ask to
    ///   retain it. If it is unknown whether an earlier attempt with this key was completed, `publish` gets the id
    ///   that the push had in that attempt. Otherwise, `publish` gets nil.
    private func once(
        _ call: APICall,
        _ answer: JSON,
        _ publish: (MessageID?) async throws -> Bool?
    ) async throws -> APIAnswer {
        guard let claim = Self.claim(call, answer) else {
            return APIAnswer(Self.adding(try await publish(nil), to: answer))
        }
        switch try await messenger.pushes.begin(claim) {
        case .before(let first):
            return Self.repeated(first)
        case .now(let bytes):
            let first = try? JSONParser.parse(bytes)
            let id = first?["id"]?.string.flatMap { MessageID($0) }
            let isRetained: Bool?
            do {
                isRetained = try await publish(bytes == claim.answer ? nil : id)
            } catch {
                await messenger.pushes.end(claim, isDone: false)
                throw error
            }
            await messenger.pushes.end(claim, isDone: true)
            return APIAnswer(Self.adding(isRetained, to: first ?? answer))
        }
    }

    /// Adds the field `retained`. The claim's answer lacks this field, because its value is known only after the push.
    private static func adding(_ isRetained: Bool?, to answer: JSON) -> JSON {
        guard let isRetained, case .object(let members) = answer else { return answer }
        return .object(members + [.init(name: "retained", value: .boolean(isRetained))])
    }

    // MARK: Idempotency

    private static func claim(_ call: APICall, _ answer: JSON) -> PushClaim? {
        guard let key = call.idempotencyKey, let owner = call.key else { return nil }
        return PushClaim(
            owner: String(owner.id),
            key: key,
            contentHash: Array(SHA256.hash(data: call.bodyBytes)),
            answer: Array(answer.text.utf8)
        )
    }

    private static func repeated(_ first: [UInt8]) -> APIAnswer {
        var answer = APIAnswer(text: String(decoding: first, as: UTF8.self))
        answer.headers = [("Idempotency-Replayed", "true")]
        return answer
    }
}
