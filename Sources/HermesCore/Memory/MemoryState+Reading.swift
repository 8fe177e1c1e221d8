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
            case .event(var event, let expiresAt):
                if case .push(let push) = event {
                    event = .push(push.expiring(at: clockJumps.corrected(expiresAt, storedAt: entry.committedAt)))
                }
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

    func history(_ query: HistoryQuery) -> StoredHistory {
        let known = conversations[query.conversation]?.messages ?? [:]
        let wanted = known.filter { $0.key > query.after && $0.key < query.before ?? .max }
        var messages: [Message] = []
        var bytes = 0
        var passed = 0
        var next: UInt64?
        for (seq, id) in wanted.sorted(by: { $0.key > $1.key }) {
            guard let stored = self.messages[id], stored.hasContent, stored.contentKeptUntil.rawValue > 0,
                let message = current(id)
            else { continue }
            guard messages.count < query.limit, bytes < query.maxBytes else { break }
            guard passed < query.maxPassed else {
                next = seq + 1
                break
            }
            let end = corrected(stored.contentKeptUntil, of: stored)
            guard query.time?.isOver(end, storedAt: message.sentAt) != true else {
                passed += 1
                continue
            }
            bytes += message.content.bytes.count
            messages.append(message)
        }
        return StoredHistory(messages: messages.reversed(), passed: passed, next: next)
    }

    func conversations(of user: UserID, after: ConversationPlace?, limit: Int) -> [ConversationSummary] {
        let direct = conversations.keys.filter { $0.peer(of: user) != nil }
        let groups = groups.values.filter { $0.member(user) != nil }.map { ConversationID.group($0.id) }
        let found = (direct + groups).compactMap { id in ConversationPlace(id, of: user).map { (place: $0, id: id) } }
            .filter { found in after.map { found.place > $0 } ?? true }
            .sorted { $0.place < $1.place }
        return found.prefix(StoreSettings.pageLimit(limit)).map { summary(of: $0.id, $0.place, user) }
    }

    private func summary(of id: ConversationID, _ place: ConversationPlace, _ user: UserID) -> ConversationSummary {
        let known = conversations[id] ?? Conversation()
        let mark = readMarks[user]?[id] ?? 0
        var name = ""
        var joinedAfter: UInt64 = 0
        switch place {
        case .user(let peer): name = records[peer]?.stored.account.nickName.rawValue ?? ""
        case .group(let group):
            name = groups[group]?.summary.name ?? ""
            joinedAfter = groups[group]?.member(user)?.joinedAfter ?? 0
        }
        return ConversationSummary(
            place: place,
            name: name,
            lastSeq: known.lastSeq,
            lastAt: known.lastAt,
            readUpTo: mark,
            unread: RecentSeqs.count(
                after: max(mark, joinedAfter),
                upTo: known.lastSeq,
                outside: known.recalled,
                and: known.own[user] ?? RecentSeqs()
            )
        )
    }

    /// Returns a message in its current state. The sender may have a new name, or no name if the account is deleted.
    func current(_ id: MessageID) -> Message? {
        guard let message = messages[id]?.message else { return nil }
        return Message(
            id: message.id,
            conversation: message.conversation,
            conversationSeq: message.conversationSeq,
            sender: message.sender,
            senderName: records[message.sender]?.stored.account.nickName.rawValue ?? "",
            senderDevice: message.senderDevice,
            clientID: message.clientID,
            content: message.content.unread,
            sentAt: message.sentAt,
            expiresAt: clockJumps.corrected(message.expiresAt, storedAt: message.sentAt),
            isRecalled: message.isRecalled
        )
    }
}
