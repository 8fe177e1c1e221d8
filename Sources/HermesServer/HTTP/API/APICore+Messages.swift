// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import HermesWire

/// Messages of conversations, sent and read as one of the participants.
extension APICore {
    private typealias Field = APISchema.Field

    /// The largest size of the contents in one page, in bytes.
    static let maxPageBytes = 1 << 20
    static let noPage = HermesError(.internalError, "the core answered another request")

    var messageRoutes: [APIRoute] {
        [
            APIRoute(
                method: .post,
                path: "/users/{user}/messages",
                id: "sendMessage",
                summary: "Send a text as this account, to a user or to one of its groups.",
                scope: .messagesWrite,
                pathParameters: [APIRoute.user],
                body: .object([
                    Field(
                        "to",
                        .oneMember([
                            Field("user", .user, "The other account of a 1:1 conversation."),
                            Field("group", Self.uid, "A group."),
                        ]),
                        required: true,
                        "Where it goes."
                    ),
                    Field("text", .text(bytes: 0...MessageText.maxBytes), required: true, "The text."),
                    Field(
                        "client_id",
                        .text(bytes: 1...MessageService.maxClientIDBytes),
                        "Makes sending again safe: the same id and text is sent once."
                    ),
                    Field("ttl_seconds", .integer(1...315_360_000), "The time after which it is not delivered."),
                ]),
                success: .created,
                answer: Self.receipt,
                failures: [.notFound, .conflict],
                handler: sendMessage
            ),
            APIRoute(
                method: .get,
                path: "/users/{user}/messages",
                id: "readMessages",
                summary: "The newest stored messages of a conversation of this account, the oldest first; needs "
                    + "store.historyDays.",
                scope: .messagesRead,
                pathParameters: [APIRoute.user],
                query: [
                    APIRoute.Parameter(
                        "with",
                        .user,
                        "The other account of a 1:1 conversation. Give either this or group."
                    ),
                    APIRoute.Parameter("group", Self.uid, "A group. Give either this or with."),
                    APIRoute.Parameter("before", .integer(1 ... .max), "Messages with a lower conversation_seq."),
                    Self.limitParameter,
                ],
                success: .ok,
                answer: .object([
                    Field("messages", .array(Self.message, count: 0...Self.maxPage), required: true, "Oldest first."),
                    Field(
                        "more",
                        .boolean,
                        required: true,
                        "Whether older ones follow; a page ends after \(PageLimit.history.most) messages or "
                            + "\(Self.maxPageBytes / 1_024) KiB, whatever limit is."
                    ),
                ]),
                failures: [.notFound],
                handler: readMessages
            ),
        ]
    }

    private static let receipt = APISchema.named(
        "Receipt",
        .object([
            Field("message_id", .string(length: 26...26), required: true, "The message's id."),
            Field("conversation_seq", .integer(1 ... .max), required: true, "Its number in the conversation."),
            Field("sent_at_ms", time, required: true, "In milliseconds since 1970."),
            Field("duplicate", .boolean, required: true, "Whether it had been sent before, so that nothing was sent."),
        ])
    )

    private static let message = APISchema.named(
        "Message",
        .object([
            Field("message_id", .string(length: 26...26), required: true, "The message's id."),
            Field("conversation_seq", .integer(1 ... .max), required: true, "Its number in the conversation."),
            Field("from_uid", uid, required: true, "Who sent it."),
            Field("from_nick_name", .string(length: 0 ... .max), required: true, "The sender's name."),
            Field("sent_at_ms", time, required: true, "In milliseconds since 1970."),
            Field("recalled", .boolean, required: true, "Whether it was recalled; it is then empty."),
            Field("text", .string(length: 0 ... .max), "The text, if it is one."),
            Field("content", .anyObject, "Other content: hermes.v1.Content as JSON."),
        ])
    )

    private func sendMessage(_ call: APICall) async throws -> APIAnswer {
        let account = try await account(of: call)
        let sender = try principal(account)
        let to = call.body["to"] ?? .null
        let conversation = try await conversation(
            of: account,
            with: to["user"].flatMap { APIUserSelector($0) },
            group: to["group"]?.integer
        )
        let draft = MessageDraft(
            conversation: conversation,
            clientID: call.body["client_id"]?.string,
            content: try MessageText.content(call.body["text"]?.string ?? ""),
            expiresAfter: call.body["ttl_seconds"]?.integer.map { .seconds($0) }
        )
        Self.messageCame()
        let result = await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }
        let receipt = try result.get()
        return APIAnswer([
            "message_id": .string(receipt.messageID.description),
            "conversation_seq": .integer(receipt.conversationSeq),
            "sent_at_ms": .integer(receipt.sentAt.rawValue),
            "duplicate": .boolean(receipt.isDuplicate),
        ])
    }

    private func readMessages(_ call: APICall) async throws -> APIAnswer {
        let account = try await account(of: call)
        guard (call.query["with"] == nil) != (call.query["group"] == nil) else {
            throw APIProblem(.badRequest, .invalidArgument, "Name the conversation: either with or group.")
        }
        let conversation = try await conversation(
            of: account,
            with: call.query["with"].flatMap { APIUserSelector($0) },
            group: call.number("group"),
            mustExist: false
        )
        let request = InboxRequest.history(
            conversation,
            before: call.number("before").map { UInt64($0) },
            limit: Self.limit(of: call)
        )
        // Requests of back ends wait for one another, but not for the account's own requests.
        let answer = try await messenger.inbox.answer(
            request,
            for: account.id,
            source: .server,
            maxBytes: Self.maxPageBytes
        )
        guard case .history(let page) = answer else { throw Self.noPage }
        return APIAnswer([
            "messages": .array(try page.messages.map(document)),
            "more": .boolean(page.hasMore),
        ])
    }

    /// Returns the principal that a back end uses to act in the name of an account.
    ///
    /// - Throws: `.accountDisabled`.
    private func principal(_ account: Account) throws(HermesError) -> Principal {
        try messenger.accounts.check(isEnabled: account)
        return Principal(user: account.id, nickName: account.nickName, device: .backEnd)
    }

    private func conversation(
        of account: Account,
        with other: APIUserSelector?,
        group: Int64?,
        mustExist: Bool = true
    ) async throws -> ConversationID {
        if let group {
            guard let id = Int32(exactly: group).flatMap(GroupID.init(rawValue:)) else { throw Self.badSelector }
            return .group(id)
        }
        // The messages of a deleted account stay, so they can be read although the account no longer exists.
        if !mustExist, case .id(let user)? = other?.key { return .direct(between: account.id, and: user) }
        return .direct(between: account.id, and: try await self.account(other).id)
    }

    private func document(of message: Message) throws -> JSON {
        var text: String?
        var content: JSON?
        if !message.isRecalled {
            text = MessageText.text(of: message.content)
            if text == nil {
                content = try? JSONParser.parse(
                    Array(MessageText.json(of: message.content).utf8),
                    maxValues: .max
                )
            }
        }
        return .members([
            "message_id": .string(message.id.description),
            "conversation_seq": .integer(message.conversationSeq),
            "from_uid": .integer(message.sender.rawValue),
            "from_nick_name": .string(message.senderName),
            "sent_at_ms": .integer(message.sentAt.rawValue),
            "recalled": .boolean(message.isRecalled),
            "text": text.map(JSON.string),
            "content": content,
        ])
    }
}
