// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates requests to the inbox, and their answers.
extension NativeTranslation {
    /// Returns a packet's request to the inbox of `user`; nil if the packet is not a request to the inbox.
    ///
    /// - Throws: `.invalidArgument`.
    static func inboxRequest(
        _ packet: Hermes_V1_Packet,
        by user: UserID
    ) throws(HermesError) -> InboxRequest? {
        switch packet.body {
        case .synchronize(let request):
            return .page(after: request.afterSeq, limit: Int(clamping: request.limit))
        case .history(let request):
            return .history(
                try conversation(request.conversation, of: user),
                before: request.beforeSeq == 0 ? nil : request.beforeSeq,
                limit: Int(clamping: request.limit)
            )
        case .conversations(let request):
            return .conversations(after: try place(request, of: user), limit: Int(clamping: request.limit))
        case .markRead(let request):
            return .markRead(try conversation(request.conversation, of: user), upTo: request.upToSeq)
        case .recall(let request):
            let conversation = try conversation(request.conversation, of: user)
            return .recall(try RequestedIDs.message(request.messageID), in: conversation)
        default:
            return nil
        }
    }

    /// Returns the conversation of `user` that a packet names.
    ///
    /// - Throws: `.invalidArgument`; `.notFound` for a uid that no account can have.
    static func conversation(
        _ conversation: Hermes_V1_Conversation,
        of user: UserID
    ) throws(HermesError) -> ConversationID {
        let named: RequestedIDs.Named? =
            switch conversation.target {
            case .uid(let uid): .user(uid)
            case .groupID(let id): .group(id)
            case nil: nil
            }
        return try RequestedIDs.conversation(named, of: user)
    }

    /// Returns the place after which a page of the conversations of `user` begins; nil if the page begins with the
    /// first conversation.
    ///
    /// - Throws: `.invalidArgument`.
    private static func place(
        _ request: Hermes_V1_ListConversations,
        of user: UserID
    ) throws(HermesError) -> ConversationPlace? {
        guard request.hasAfter else { return nil }
        // A place is only a number. The account need not exist, but the number must be a valid uid.
        if case .uid(let uid) = request.after.target, UserID(uid) == nil { throw RequestedIDs.badPlace }
        return ConversationPlace(try conversation(request.after, of: user), of: user)
    }

    /// Returns the value of a result; nil if the result is empty.
    static func value(of answer: InboxAnswer, reader: UserID) -> Hermes_V1_Result.OneOf_Value? {
        switch answer {
        case .page(let page): .synchronized(synchronized(page))
        case .history(let page): .history(history(page, reader: reader))
        case .conversations(let page): .conversations(conversations(page))
        case .done: nil
        }
    }

    /// Returns the answer to `synchronize`. The entries follow it as events.
    private static func synchronized(_ page: InboxPage) -> Hermes_V1_Synchronized {
        var answer = Hermes_V1_Synchronized()
        answer.epoch = page.position.epoch
        answer.headSeq = page.position.head
        answer.oldestSeq = page.position.oldest
        answer.count = UInt32(clamping: page.entries.count)
        return answer
    }

    private static func history(_ page: HistoryPage, reader: UserID) -> Hermes_V1_History {
        var history = Hermes_V1_History()
        history.more = page.hasMore
        history.messages = page.messages.map { Hermes_V1_Message($0, reader: reader) }
        return history
    }

    private static func conversations(_ page: ConversationPage) -> Hermes_V1_ConversationList {
        var list = Hermes_V1_ConversationList()
        list.more = page.next != nil
        list.conversations = page.conversations.map { summary in
            var answer = Hermes_V1_ConversationSummary()
            switch summary.place {
            case .user(let peer): answer.conversation.uid = UInt32(peer.rawValue)
            case .group(let group): answer.conversation.groupID = UInt32(group.rawValue)
            }
            answer.name = summary.name
            answer.lastSeq = summary.lastSeq
            answer.lastMessageAtMs = summary.lastAt?.rawValue ?? 0
            answer.readSeq = summary.readUpTo
            answer.unread = summary.unread
            return answer
        }
        return list
    }
}
