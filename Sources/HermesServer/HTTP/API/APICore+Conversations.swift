// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Lists of conversations.
extension APICore {
    private typealias Field = APISchema.Field

    private static let place = APISchema.string(
        length: 1 ... .max,
        APISchema.StringForm(
            pattern: "^(user|group):[1-9][0-9]{0,9}$",
            meaning: "as \"next\" of an answer, such as user:7 or group:9"
        ) { ConversationPlace(text: $0) != nil }
    )

    var conversationRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/users/{user}/conversations",
                id: "listConversations",
                summary: "The conversations of an account and what is unread in them: by the other account's uid, then "
                    + "by group, page by page. Never the content.",
                scope: .messagesRead,
                pathParameters: [APIRoute.user],
                query: [
                    APIRoute.Parameter("after", Self.place, "Where the page begins: \"next\" of the page before."),
                    Self.limitParameter,
                ],
                success: .ok,
                answer: .object([
                    Field(
                        "conversations",
                        .array(Self.conversation, count: 0...Self.maxPage),
                        required: true,
                        "By uid, then by group, ascending."
                    ),
                    Field("next", Self.place, "For the next page; absent on the last one."),
                ]),
                failures: [.notFound],
                handler: listConversations
            )
        ]
    }

    private static let conversation = APISchema.named(
        "Conversation",
        .object([
            Field("user", uid, "The other account; absent for a group."),
            Field("group", uid, "The group; absent for a 1:1 conversation."),
            Field(
                "name",
                .string(length: 0 ... .max),
                required: true,
                "The present name of the account or group; empty: the account is deleted."
            ),
            Field("last_seq", time, required: true, "The conversation_seq of the last message; 0: there is none."),
            Field("last_message_at_ms", time, "When it was sent, in milliseconds since 1970; absent: not known."),
            Field("read_seq", time, required: true, "The conversation_seq of the last message that was read."),
            Field(
                "unread",
                time,
                required: true,
                "Messages of others after read_seq that were not recalled; in a group, only those since the account "
                    + "joined. Own and recalled messages older than the last 64 are counted, too."
            ),
        ])
    )

    private func listConversations(_ call: APICall) async throws -> APIAnswer {
        let request = InboxRequest.conversations(
            after: call.query["after"].flatMap { ConversationPlace(text: $0) },
            limit: Self.limit(of: call)
        )
        // Requests of back ends wait for one another, but not for the account's own requests.
        let answer = try await messenger.inbox.answer(request, for: account(of: call).id, source: .server)
        guard case .conversations(let page) = answer else { throw Self.noPage }
        return APIAnswer(
            .members([
                "conversations": .array(page.conversations.map(Self.document)),
                "next": page.next.map { .string($0.text) },
            ])
        )
    }

    private static func document(of conversation: ConversationSummary) -> JSON {
        var user: UserID?
        var group: GroupID?
        switch conversation.place {
        case .user(let peer): user = peer
        case .group(let id): group = id
        }
        return .members([
            "user": user.map { .integer($0.rawValue) },
            "group": group.map { .integer($0.rawValue) },
            "name": .string(conversation.name),
            "last_seq": .integer(conversation.lastSeq),
            "last_message_at_ms": conversation.lastAt.map { .integer($0.rawValue) },
            "read_seq": .integer(conversation.readUpTo),
            "unread": .integer(conversation.unread),
        ])
    }
}
