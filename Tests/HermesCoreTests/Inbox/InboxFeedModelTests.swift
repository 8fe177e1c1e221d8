// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

/// Random commits, loads, failures, lost notifications, acknowledgements, requested pages and reconnections. A device
/// gets each entry once per connection, in order and without a gap. In the end, it has all entries. It also gets each
/// page that it has requested, completely and before all other entries.
@Suite(.inTurns) struct InboxFeedModelTests {
    @Test(arguments: 0..<200)
    func `delivers each entry once in order`(seed: UInt64) throws {
        var model = try Model(seed: seed)
        for _ in 0..<600 { try model.step() }
        try model.finish()
    }

    private struct Model {
        var random: SplitMix
        let own: Principal
        var inbox: [InboxEntry] = []
        /// All entries up to this seq are gone from the store.
        var purged: UInt64 = 0
        var feed: InboxFeed
        var isOpen = false
        var headAtOpen: UInt64 = 0
        /// The notifications that are on their way to the feed.
        var notifications: [[InboxEntry]] = []
        var load: (after: UInt64, limit: Int)?
        var mustRetry = false
        /// The last seq that the client has seen on this connection. ``cursor`` is the cursor that the server keeps for
        /// the client.
        var seen: UInt64 = 0
        var cursor: UInt64 = 0
        let window: Int
        /// The entries that the client has requested but has not received yet.
        var requested: [InboxEntry] = []

        init(seed: UInt64) throws {
            random = SplitMix(state: seed)
            own = try principal(1)
            window = [1, 3, 8, 1024][Int(seed % 4)]
            feed = InboxFeed(principal: own, window: window, pageSize: 5)
        }

        var head: UInt64 { UInt64(inbox.count) }

        mutating func step() throws {
            switch Int.random(in: 0..<16, using: &random) {
            case 0...3: try commit()
            case 4: if !notifications.isEmpty { try handle(.entriesCommitted(notifications.removeFirst())) }
            case 5: if !notifications.isEmpty { notifications.removeFirst() }
            case 6, 7: try answerLoad()
            case 8: try failLoad()
            case 9: try retry()
            case 10: try handle(.acknowledged(upTo: UInt64.random(in: 0...seen, using: &random)))
            case 11: try handle(Bool.random(using: &random) ? .unwritable : .writable)
            case 12:
                try handle(.written(upTo: UInt64.random(in: 0...seen, using: &random)))
                try handle(.peerSpoke)
            case 13, 14: try request()
            default:
                if Int.random(in: 0..<4, using: &random) == 0 { try reconnect() }
            }
        }

        mutating func commit() throws {
            var batch: [InboxEntry] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let isOwn = isOpen && Int.random(in: 0..<3, using: &random) == 0
                batch.append(try entry(head + 1 + UInt64(batch.count), isOwn: isOwn))
            }
            inbox += batch
            notifications.append(batch)
            if Int.random(in: 0..<10, using: &random) == 0 { purged = min(cursor, head) }
        }

        func entry(_ seq: UInt64, isOwn: Bool) throws -> InboxEntry {
            let sender = isOwn ? own.user : try user(2)
            let message = Message(
                id: MessageID(high: seq, low: 0),
                conversation: .direct(between: own.user, and: try user(2)),
                conversationSeq: seq,
                sender: sender,
                senderName: "",
                senderDevice: own.device,
                clientID: nil,
                content: MessageContent(bytes: []),
                sentAt: Timestamp(rawValue: 0),
                expiresAt: Timestamp(rawValue: 0)
            )
            return InboxEntry(seq: seq, committedAt: Timestamp(rawValue: 0), event: .message(message))
        }

        mutating func answerLoad() throws {
            guard let asked = load else { return }
            load = nil
            var entries = inbox.dropFirst(Int(max(asked.after, purged))).prefix(asked.limit)[...]
            if asked.after < purged {
                let hole = InboxEntry(
                    seq: asked.after + 1,
                    committedAt: Timestamp(rawValue: 0),
                    event: .expired(through: purged)
                )
                entries = [hole] + entries.prefix(asked.limit - 1)
            }
            let position = InboxPosition(epoch: 1, head: head, oldest: purged + 1)
            try handle(.pageLoaded(InboxPage(entries: Array(entries), position: position)))
        }

        mutating func failLoad() throws {
            guard load != nil else { return }
            load = nil
            mustRetry = true
            try handle(.pageFailed)
        }

        mutating func request() throws {
            guard isOpen, requested.isEmpty, !inbox.isEmpty else { return }
            let first = Int.random(in: 0..<inbox.count, using: &random)
            requested = Array(inbox[first...].prefix(Int.random(in: 1...9, using: &random)))
            try handle(.pageRequested(requested))
        }

        /// Writes a part of the page, or the whole page, to the connection.
        mutating func write(page: ArraySlice<InboxEntry>) throws {
            #expect(!page.isEmpty && Array(page) == requested)
            let count = Int.random(in: 0...page.count, using: &random)
            requested = Array(page.dropFirst(count))
            if let rest = requested.first {
                try handle(.cutShort(after: rest.seq - 1))
            } else {
                try handle(Bool.random(using: &random) ? .unwritable : .writable)
            }
        }

        mutating func retry() throws {
            guard mustRetry else { return }
            mustRetry = false
            try handle(.retryDue)
        }

        mutating func reconnect(headAtLogin: UInt64? = nil) throws {
            feed = InboxFeed(principal: own, window: window, pageSize: 5)
            load = nil
            requested = []
            mustRetry = false
            seen = cursor
            // The login may be older than the newest commits.
            headAtOpen = headAtLogin ?? max(cursor, head - min(head, UInt64.random(in: 0...3, using: &random)))
            notifications.removeAll { _ in Bool.random(using: &random) }
            isOpen = true
            try handle(.opened(after: cursor, head: headAtOpen))
        }

        mutating func handle(_ event: InboxFeed.Event) throws {
            switch feed.handle(event) {
            case .none: break
            case .load(let after, let limit):
                #expect(isOpen && load == nil && limit > 0)
                load = (after, limit)
            case .write(let entries):
                #expect(!entries.isEmpty && requested.isEmpty)
                for entry in entries { receive(entry) }
            case .writePage(let entries): try write(page: entries)
            }
            if let seq = feed.takeAcknowledgement() {
                #expect(seq > cursor || seq <= head)
                cursor = max(cursor, seq)
            }
            #expect(feed.acknowledged <= feed.written)
        }

        mutating func receive(_ entry: InboxEntry) {
            #expect(entry.seq > seen, "twice, or out of order")
            guard entry.seq > seen else { return }
            for seq in seen + 1..<entry.seq { #expect(isSkippable(seq), "gap before \(entry.seq)") }
            seen = entry.lastSeq
            if case .expired(let through) = entry.event { #expect(through <= purged) }
        }

        func isSkippable(_ seq: UInt64) -> Bool {
            guard seq > headAtOpen, case .message(let message) = inbox[Int(seq) - 1].event else { return false }
            return message.sender == own.user
        }

        mutating func finish() throws {
            if !isOpen { try reconnect() }
            try handle(.writable)
            // Notifications may be lost. So the feed may learn of the newest entries only from the next commit.
            try commit()
            try catchUp()
            // The client is up to date when it logs in. An entry is committed before it is attached, and the first load
            // fails.
            let headAtLogin = head
            try commit()
            notifications = []
            try reconnect(headAtLogin: headAtLogin)
            try failLoad()
            try handle(.writable)
            try catchUp()
        }

        mutating func catchUp() throws {
            for _ in 0..<10_000 {
                if let last = notifications.last {
                    notifications = []
                    try handle(.entriesCommitted(last))
                }
                try retry()
                try answerLoad()
                try handle(.acknowledged(upTo: seen))
                try handle(.writable)
                if feed.isLive && load == nil && !mustRetry { break }
            }
            #expect(feed.isLive && requested.isEmpty && !feed.hasRequested)
            #expect(feed.head == head)
            for seq in min(seen, head)..<head { #expect(isSkippable(seq + 1), "\(seq + 1) never came") }
            #expect(cursor == head)
        }
    }
}
