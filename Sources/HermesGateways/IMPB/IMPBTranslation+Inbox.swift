// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates inbox requests and their answers. All errors are `.invalidArgument`.
extension IMPBTranslation {
    static func inboxRequest(_ request: IMPB_pull_request) -> InboxRequest {
        .page(after: request.afterSeq, limit: Int(clamping: request.limit))
    }

    static func inboxRequest(_ request: IMPB_history_request, by user: UserID) -> Result<InboxRequest, HermesError> {
        conversation(request.conversation, of: user).map { conversation in
            .history(
                conversation,
                before: request.beforeSeq == 0 ? nil : request.beforeSeq,
                limit: Int(clamping: request.limit)
            )
        }
    }

    static func inboxRequest(_ request: IMPB_read_request, by user: UserID) -> Result<InboxRequest, HermesError> {
        conversation(request.conversation, of: user).map { .markRead($0, upTo: request.upToSeq) }
    }

    static func inboxRequest(_ request: IMPB_recall_request, by user: UserID) -> Result<InboxRequest, HermesError> {
        Result { () throws(HermesError) in
            let conversation = try conversation(request.conversation, of: user).get()
            return .recall(try RequestedIDs.message(request.messageID), in: conversation)
        }
    }

    /// Returns the conversation that `user` names by a uid or a group id.
    private static func conversation(
        _ id: IMPB_Conversation_id,
        of user: UserID
    ) -> Result<ConversationID, HermesError> {
        Result { () throws(HermesError) in
            guard id.groupID == 0 || id.uid == 0 else {
                throw HermesError(.invalidArgument, "name a uid or a group, not both")
            }
            let named: RequestedIDs.Named? =
                if id.groupID != 0 { .group(id.groupID) } else if id.uid != 0 { .user(id.uid) } else { nil }
            return try RequestedIDs.conversation(named, of: user)
        }
    }

    /// Returns the answer to a pull. The entries follow the answer in separate frames.
    static func pulled(_ page: InboxPage) -> IMPB_pull_response {
        var answer = IMPB_pull_response()
        answer.epoch = page.position.epoch
        answer.headSeq = page.position.head
        answer.oldestSeq = page.position.oldest
        answer.count = UInt32(clamping: page.entries.count)
        return answer
    }

    /// Returns the newest messages of a page, as many as fit into a frame.
    static func history(_ page: HistoryPage, reader: Principal) -> IMPB_history_response {
        // The other fields of the answer leave this many bytes. The first message always fits. If it did not fit, no
        // client could get past it.
        var room = IMPBFrame.maxBodyBytes - 64
        var messages: [IMPB_History_msg] = []
        for message in page.messages.reversed() {
            var item = IMPB_History_msg()
            item.msg = base(message, seq: 0, reader: reader, maxBytes: IMPBFrame.maxBodyBytes - 128)
            item.conversationSeq = message.conversationSeq
            item.recalled = message.isRecalled
            room -= item.msg.body.count + 32
            guard room >= 0 else { break }
            messages.append(item)
        }
        var answer = IMPB_history_response()
        answer.messages = messages.reversed()
        answer.more = page.hasMore || messages.count < page.messages.count
        return answer
    }
}
