// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

extension MemoryState {
    func position(of user: UserID) -> InboxPosition {
        let inbox = records[user]?.inbox ?? Inbox()
        return InboxPosition(epoch: epoch, head: inbox.head, oldest: inbox.oldest)
    }

    func page(of user: UserID, after seq: UInt64, limit: Int) -> InboxPage {
        let inbox = records[user]?.inbox ?? Inbox()
        let start = inbox.firstIndex(after: seq)
        var page = InboxPageBuilder(after: seq, limit: limit)
        for entry in inbox.entries[start...] {
            guard page.hasRoom(before: entry.seq) else { break }
            switch entry.item {
            case .event(let event, _):
                page.append(
                    InboxEntry(seq: entry.seq, committedAt: entry.committedAt, event: event),
                    bytes: event.bytes
                )
            case .message(let id):
                guard let message = current(id) else { continue }
                page.append(
                    InboxEntry(seq: entry.seq, committedAt: entry.committedAt, event: .message(message)),
                    bytes: message.content.bytes.count
                )
            }
        }
        return page.finish(position(of: user))
    }

    func history(of conversation: ConversationID, before seq: UInt64?, limit: Int) -> [Message] {
        guard let known = conversations[conversation]?.messages else { return [] }
        let limit = min(max(limit, 0), StoreSettings.maxPageEntries)
        var messages: [Message] = []
        var bytes = 0
        for (_, id) in known.filter({ $0.key < seq ?? .max }).sorted(by: { $0.key > $1.key }) {
            guard messages.count < limit, bytes < StoreSettings.maxPageBytes else { break }
            guard let stored = self.messages[id], stored.hasContent, stored.contentKeptUntil.rawValue > 0,
                let message = current(id)
            else { continue }
            bytes += message.content.bytes.count
            messages.append(message)
        }
        return messages.reversed()
    }

    /// A message as it is returned today: its sender may have a new name, or none.
    private func current(_ id: MessageID) -> Message? {
        guard let message = messages[id]?.message else { return nil }
        return Message(
            id: message.id,
            conversation: message.conversation,
            conversationSeq: message.conversationSeq,
            sender: message.sender,
            senderName: records[message.sender]?.stored.account.nickName.rawValue ?? "",
            senderDevice: message.senderDevice,
            clientID: message.clientID,
            content: message.content,
            sentAt: message.sentAt,
            expiresAt: message.expiresAt,
            isRecalled: message.isRecalled
        )
    }
}
