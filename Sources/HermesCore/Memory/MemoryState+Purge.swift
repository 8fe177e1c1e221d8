// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

extension MemoryState {
    mutating func purge(now: Timestamp, limit: Int) -> Int {
        var done = 0
        for user in records.keys.sorted() where done < limit {
            done += purgeInbox(of: user, now: now, limit: limit - done)
        }
        for (id, stored) in messages where stored.references == 0 && done < limit {
            if stored.hasContent, corrected(stored.contentKeptUntil, of: stored) <= now {
                dropContent(of: id)
                done += 1
            } else if !stored.hasContent, corrected(stored.recordKeptUntil, of: stored) <= now {
                forget(id)
                done += 1
            }
        }
        return done + purgePushClaims(now: now, limit: limit - done)
    }

    private mutating func purgeInbox(of user: UserID, now: Timestamp, limit: Int) -> Int {
        guard let record = records[user] else { return 0 }
        let acknowledged = record.inbox.acknowledged
        var kept = Deque<Entry>()
        var released: [MessageID] = []
        var gone: [Entry] = []
        var deleted = 0
        for entry in record.inbox.entries {
            guard deleted < limit, entry.seq <= acknowledged || expiry(of: entry) <= now else {
                kept.append(entry)
                continue
            }
            deleted += 1
            gone.append(entry)
            if case .message(let id) = entry.item { released.append(id) }
        }
        guard deleted > 0 else { return 0 }
        records[user]?.inbox.entries = kept
        for entry in gone { uncount(entry, of: user) }
        let oldest = kept.first?.seq ?? record.inbox.head + 1
        records[user]?.collapsible = record.collapsible.filter { $0.value >= oldest }
        for id in released { release(id, now: now) }
        return deleted
    }

    /// Removes the reference of one inbox to a message. If this was the last reference and the time to keep the content
    /// is over, the content is dropped.
    mutating func release(_ id: MessageID, now: Timestamp) {
        messages[id]?.references -= 1
        if let stored = messages[id], stored.references == 0, corrected(stored.contentKeptUntil, of: stored) <= now {
            dropContent(of: id)
        }
    }

    private func expiry(of entry: Entry) -> Timestamp {
        switch entry.item {
        case .event(_, let expiresAt): clockJumps.corrected(expiresAt, storedAt: entry.committedAt)
        case .message(let id): current(id)?.expiresAt ?? Timestamp(rawValue: .min)
        }
    }

    func corrected(_ time: Timestamp, of stored: StoredMessage) -> Timestamp {
        clockJumps.corrected(time, storedAt: stored.message.sentAt)
    }

    mutating func takeBack(_ setback: ClockSetback) {
        guard let jump = setback.undoes(clockJumps) else { return }
        clockJumps.remove(jump)
        func isLate(_ time: Timestamp) -> Bool { setback.concerns(time, of: jump) }
        func earlier(_ time: Timestamp) -> Timestamp { time.advanced(by: .zero - jump.length) }
        for (id, stored) in messages where isLate(stored.message.sentAt) {
            messages[id]?.message.sentAt = earlier(stored.message.sentAt)
            messages[id]?.message.expiresAt = earlier(stored.message.expiresAt)
            messages[id]?.contentKeptUntil = earlier(stored.contentKeptUntil)
            messages[id]?.recordKeptUntil = earlier(stored.recordKeptUntil)
        }
        for user in Array(records.keys) {
            guard let entries = records[user]?.inbox.entries else { continue }
            for (index, entry) in entries.enumerated() where isLate(entry.committedAt) {
                var item = entry.item
                if case .event(let event, let expiresAt) = item { item = .event(event, expiresAt: earlier(expiresAt)) }
                records[user]?.inbox.entries[index] = Entry(
                    seq: entry.seq,
                    committedAt: earlier(entry.committedAt),
                    item: item,
                    source: entry.source,
                    bytes: entry.bytes
                )
            }
        }
    }

    private mutating func dropContent(of id: MessageID) {
        guard let stored = messages[id] else { return }
        usedBytes -= stored.message.content.bytes.count
        messages[id]?.message.content = MessageContent(bytes: [])
        messages[id]?.hasContent = false
    }

    private mutating func forget(_ id: MessageID) {
        guard let stored = messages.removeValue(forKey: id) else { return }
        conversations[stored.message.conversation]?.messages[stored.message.conversationSeq] = nil
        if let clientID = stored.message.clientID {
            clientIDs[ClientKey(sender: stored.message.sender, clientID: clientID)] = nil
        }
    }
}
