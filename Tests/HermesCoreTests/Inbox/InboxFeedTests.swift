// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

/// Tests every event in every state of the feed. The states are: not opened, loading, live, waiting for the peer
/// (because the window is full), waiting for the retry, and unwritable.
@Suite struct InboxFeedTests {
    private func entry(_ seq: UInt64, from sender: Int32 = 9, _ deviceName: String = "phone") throws -> InboxEntry {
        let message = Message(
            id: MessageID(high: seq, low: 0),
            conversation: .direct(between: try user(1), and: try user(sender)),
            conversationSeq: seq,
            sender: try user(sender),
            senderName: "",
            senderDevice: try device(deviceName),
            clientID: nil,
            content: MessageContent(bytes: []),
            sentAt: Timestamp(rawValue: 0),
            expiresAt: Timestamp(rawValue: 0)
        )
        return InboxEntry(seq: seq, committedAt: Timestamp(rawValue: 0), event: .message(message))
    }

    private func entries(_ seqs: ClosedRange<UInt64>) throws -> [InboxEntry] { try seqs.map { try entry($0) } }

    private func page(_ entries: [InboxEntry], head: UInt64) -> InboxFeed.Event {
        .pageLoaded(InboxPage(entries: entries, position: InboxPosition(epoch: 1, head: head, oldest: 1)))
    }

    private func feed(window: Int = 10, pageSize: Int = 4) throws -> InboxFeed {
        InboxFeed(principal: try principal(1), window: window, pageSize: pageSize)
    }

    /// Returns a feed that is live after `seq`.
    private func liveFeed(at seq: UInt64, window: Int = 10) throws -> InboxFeed {
        var feed = try feed(window: window)
        #expect(feed.handle(.opened(after: seq, head: seq)) == .load(after: seq, limit: min(4, window)))
        #expect(feed.handle(page([], head: seq)) == .none)
        #expect(feed.isLive)
        return feed
    }

    // MARK: Not opened

    @Test func `before it is opened nothing happens`() throws {
        var feed = try feed()
        #expect(feed.handle(.entriesCommitted(try entries(3...5))) == .none)
        let silent: [InboxFeed.Event] = [
            page(try entries(1...2), head: 9), .pageFailed, .retryDue, .unwritable, .writable, .written(upTo: 3),
            .acknowledged(upTo: 3), .peerSpoke,
        ]
        for event in silent { #expect(feed.handle(event) == .none) }
        #expect(feed.takeAcknowledgement() == nil)
        // The feed remembers entries that were committed meanwhile.
        #expect(feed.handle(.opened(after: 2, head: 2)) == .load(after: 2, limit: 4))
        #expect(feed.head == 5)
    }

    @Test func `a cursor beyond the head is cut`() throws {
        var feed = try feed()
        #expect(feed.handle(.opened(after: .max, head: 7)) == .load(after: 7, limit: 4))
    }

    // MARK: Loading

    @Test func `while loading no second load begins`() throws {
        var feed = try feed()
        #expect(feed.handle(.opened(after: 0, head: 6)) == .load(after: 0, limit: 4))
        let silent: [InboxFeed.Event] = [
            .opened(after: 3, head: 3), .entriesCommitted(try entries(7...8)), .retryDue, .unwritable, .writable,
            .written(upTo: 1), .acknowledged(upTo: 0), .peerSpoke, .entriesCommitted([]),
        ]
        for event in silent { #expect(feed.handle(event) == .none) }
        #expect(!feed.isLive)
        #expect(feed.handle(page(try entries(1...4), head: 6)) == .write(try entries(1...4)))
        #expect(feed.handle(.writable) == .load(after: 4, limit: 4))
        #expect(feed.handle(page(try entries(5...8), head: 8)) == .write(try entries(5...8)))
        #expect(feed.handle(.writable) == .none)
        #expect(feed.isLive)
    }

    @Test func `a failed load waits for the retry`() throws {
        var feed = try feed()
        _ = feed.handle(.opened(after: 0, head: 2))
        #expect(feed.handle(.pageFailed) == .none)
        let silent: [InboxFeed.Event] = [
            .entriesCommitted(try entries(2...3)), .writable, .acknowledged(upTo: 0), .pageFailed, .peerSpoke,
            page(try entries(1...2), head: 2), .opened(after: 0, head: 2), .written(upTo: 9),
        ]
        for event in silent { #expect(feed.handle(event) == .none) }
        #expect(feed.handle(.retryDue) == .load(after: 0, limit: 4))
        #expect(feed.handle(.retryDue) == .none)
        #expect(feed.handle(page(try entries(1...3), head: 3)) == .write(try entries(1...3)))
    }

    @Test func `a first load that failed is repeated although no entry is known to wait`() throws {
        var feed = try feed()
        #expect(feed.handle(.opened(after: 3, head: 3)) == .load(after: 3, limit: 4))
        #expect(feed.handle(.pageFailed) == .none)
        #expect(feed.handle(.writable) == .none && !feed.isLive)
        #expect(feed.handle(.retryDue) == .load(after: 3, limit: 4))
        // The entry was committed between the login and the attachment.
        #expect(feed.handle(page([try entry(4)], head: 4)) == .write([try entry(4)]))
        #expect(feed.handle(.writable) == .none && feed.isLive)
    }

    @Test func `acknowledging beyond what was written skips`() throws {
        var feed = try feed()
        _ = feed.handle(.opened(after: 0, head: 8))
        #expect(feed.handle(.acknowledged(upTo: 6)) == .none)
        #expect(feed.takeAcknowledgement() == 6)
        #expect(feed.handle(page(try entries(1...4), head: 8)) == .load(after: 6, limit: 4))
        #expect(feed.handle(page(try entries(7...8), head: 8)) == .write(try entries(7...8)))
        #expect(feed.handle(.acknowledged(upTo: 8)) == .none)
        #expect(feed.takeAcknowledgement() == 8)
        #expect(feed.takeAcknowledgement() == nil)
    }

    @Test func `holes are told and passed`() throws {
        var feed = try feed()
        _ = feed.handle(.opened(after: 0, head: 20))
        let hole = InboxEntry(seq: 1, committedAt: Timestamp(rawValue: 0), event: .expired(through: 9))
        let loaded = [hole] + (try entries(10...12))
        #expect(feed.handle(page(loaded, head: 20)) == .write(loaded))
        #expect(feed.written == 12)
        // The store leaves out a hole, or returns nothing at all.
        let hole13 = InboxEntry(seq: 13, committedAt: Timestamp(rawValue: 0), event: .expired(through: 14))
        _ = feed.handle(.acknowledged(upTo: 12))
        #expect(feed.handle(page(try entries(15...16), head: 20)) == .write([hole13] + (try entries(15...16))))
        _ = feed.handle(.acknowledged(upTo: 16))
        let hole17 = InboxEntry(seq: 17, committedAt: Timestamp(rawValue: 0), event: .expired(through: 20))
        #expect(feed.handle(page([], head: 20)) == .write([hole17]))
        #expect(feed.isLive)
    }

    // MARK: Live

    @Test func `live entries are written once`() throws {
        var feed = try liveFeed(at: 5)
        #expect(feed.handle(.entriesCommitted(try entries(6...7))) == .write(try entries(6...7)))
        #expect(feed.handle(.entriesCommitted(try entries(6...7))) == .none)
        #expect(feed.handle(.entriesCommitted(try entries(7...8))) == .write([try entry(8)]))
        #expect(feed.handle(.entriesCommitted([])) == .none)
        for event in [InboxFeed.Event.writable, .retryDue, .pageFailed, page(try entries(1...9), head: 9), .peerSpoke] {
            #expect(feed.handle(event) == .none)
        }
        #expect(feed.written == 8)
        #expect(feed.handle(.opened(after: 0, head: 99)) == .none)
        #expect(feed.isLive)
    }

    @Test func `a gap is loaded`() throws {
        var feed = try liveFeed(at: 5)
        #expect(feed.handle(.entriesCommitted(try entries(8...9))) == .load(after: 5, limit: 4))
        #expect(feed.handle(.entriesCommitted([try entry(10)])) == .none)
        #expect(feed.handle(page(try entries(6...9), head: 9)) == .write(try entries(6...9)))
        #expect(feed.handle(.writable) == .load(after: 9, limit: 4))
        var other = try liveFeed(at: 5)
        #expect(other.handle(.entriesCommitted([try entry(6), try entry(8)])) == .load(after: 5, limit: 4))
    }

    @Test func `unwritable stops until writable`() throws {
        var feed = try liveFeed(at: 0)
        #expect(feed.handle(.unwritable) == .none)
        #expect(feed.handle(.entriesCommitted(try entries(1...2))) == .none)
        #expect(feed.handle(.acknowledged(upTo: 0)) == .none)
        #expect(feed.handle(.writable) == .load(after: 0, limit: 4))
        // A page that is on its way is written even if the queue has become full meanwhile, because the size of a page
        // is bounded.
        #expect(feed.handle(.unwritable) == .none)
        #expect(feed.handle(page(try entries(1...2), head: 2)) == .write(try entries(1...2)))
    }

    @Test func `the window bounds what is not acknowledged`() throws {
        var feed = try liveFeed(at: 0, window: 3)
        #expect(feed.handle(.entriesCommitted(try entries(1...5))) == .write(try entries(1...3)))
        let silent: [InboxFeed.Event] = [
            .entriesCommitted([try entry(6)]), .writable, .retryDue, .peerSpoke, .written(upTo: 2),
        ]
        for event in silent { #expect(feed.handle(event) == .none) }
        #expect(!feed.isLive)
        #expect(feed.handle(.acknowledged(upTo: 2)) == .load(after: 3, limit: 2))
        #expect(feed.takeAcknowledgement() == 2)
        #expect(feed.handle(page(try entries(4...5), head: 6)) == .write(try entries(4...5)))
        #expect(feed.handle(.acknowledged(upTo: 5)) == .load(after: 5, limit: 3))
    }

    @Test
    func `what was never committed is not acknowledged`() throws {
        var feed = try liveFeed(at: 5)
        // The acknowledgement may be of an inbox that the store has lost. So it is checked against the store, but only
        // once.
        #expect(feed.handle(.acknowledged(upTo: 9)) == .load(after: 5, limit: 4))
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(page(try entries(6...7), head: 7)) == .write(try entries(6...7)))
        #expect(feed.handle(.acknowledged(upTo: 9)) == .none)
        _ = feed.handle(.entriesCommitted(try entries(8...10)))
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.acknowledged(upTo: 7)) == .none)
        #expect(feed.takeAcknowledgement() == 7)
    }

    @Test func `what is committed may be acknowledged before this hears of it`() throws {
        var feed = try liveFeed(at: 5)
        #expect(feed.handle(.acknowledged(upTo: 7)) == .load(after: 5, limit: 4))
        #expect(feed.handle(page(try entries(6...7), head: 7)) == .none)
        #expect(feed.takeAcknowledgement() == 7)
        // A page that was requested before the acknowledgement cannot confirm it.
        #expect(feed.handle(.entriesCommitted([try entry(9)])) == .load(after: 7, limit: 4))
        #expect(feed.handle(.acknowledged(upTo: 10)) == .none)
        #expect(feed.handle(page(try entries(8...9), head: 9)) == .write(try entries(8...9)))
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.writable) == .load(after: 9, limit: 4))
        #expect(feed.handle(page([try entry(10)], head: 10)) == .none)
        #expect(feed.takeAcknowledgement() == 10)
    }

    // MARK: Own echoes

    @Test func `own echoes are skipped but counted`() throws {
        var feed = try liveFeed(at: 0)
        #expect(feed.handle(.entriesCommitted([try entry(1, from: 1)])) == .none)
        #expect(feed.written == 1)
        #expect(feed.takeAcknowledgement() == 1)
        #expect(
            feed.handle(.entriesCommitted([try entry(2, from: 1, "pad")])) == .write([try entry(2, from: 1, "pad")])
        )
        // A device of another account is not the feed's own device, even if it has the same device id.
        #expect(feed.handle(.entriesCommitted([try entry(3, from: 2)])) == .write([try entry(3, from: 2)]))
        let mixed = [try entry(4, from: 1), try entry(5), try entry(6, from: 1)]
        #expect(feed.handle(.entriesCommitted(mixed)) == .write([try entry(5)]))
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.acknowledged(upTo: 5)) == .none)
        #expect(feed.takeAcknowledgement() == 6)
    }

    @Test func `own echoes from before the connection are written`() throws {
        var feed = try feed()
        _ = feed.handle(.opened(after: 0, head: 2))
        let loaded = [try entry(1, from: 1), try entry(2), try entry(3, from: 1)]
        #expect(feed.handle(page(loaded, head: 3)) == .write([try entry(1, from: 1), try entry(2)]))
        #expect(feed.isLive)
    }

    @Test func `a sender who never acknowledges is not stopped`() throws {
        var feed = try liveFeed(at: 0, window: 3)
        for seq in 1...100 as ClosedRange<UInt64> {
            #expect(feed.handle(.entriesCommitted([try entry(seq, from: 1)])) == .none)
        }
        #expect(feed.takeAcknowledgement() == 100)
        #expect(feed.handle(.entriesCommitted([try entry(101)])) == .write([try entry(101)]))
    }

    // MARK: Peers that do not acknowledge

    @Test func `a frame acknowledges what has left before`() throws {
        var feed = try liveFeed(at: 0)
        _ = feed.handle(.entriesCommitted(try entries(1...4)))
        #expect(feed.handle(.peerSpoke) == .none)
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.written(upTo: 3)) == .none)
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.peerSpoke) == .none)
        #expect(feed.takeAcknowledgement() == 3)
        // The acknowledgement includes at most the written entries, and the echoes that follow them.
        _ = feed.handle(.entriesCommitted([try entry(5, from: 1)]))
        #expect(feed.handle(.written(upTo: .max)) == .none)
        #expect(feed.handle(.peerSpoke) == .none)
        #expect(feed.takeAcknowledgement() == 5)
        #expect(feed.handle(.written(upTo: 1)) == .none)
        #expect(feed.handle(.peerSpoke) == .none)
        #expect(feed.takeAcknowledgement() == nil)
    }

    // MARK: Entries that the peer cannot accept

    @Test func `what is left out counts once all before it is taken`() throws {
        var feed = try liveFeed(at: 2)
        #expect(feed.handle(.entriesCommitted(try entries(3...6))) == .write(try entries(3...6)))
        feed.leftOut(behind: 4)
        #expect(feed.handle(.writable) == .none)
        #expect(feed.takeAcknowledgement() == nil)
        #expect(feed.handle(.acknowledged(upTo: 3)) == .none)
        #expect(feed.takeAcknowledgement() == 3)
        #expect(feed.handle(.acknowledged(upTo: 4)) == .none)
        #expect(feed.takeAcknowledgement() == 6)
        // No earlier entry is still unacknowledged.
        #expect(feed.handle(.entriesCommitted(try entries(7...8))) == .write(try entries(7...8)))
        feed.leftOut(behind: 4)
        #expect(feed.handle(.writable) == .none)
        #expect(feed.takeAcknowledgement() == 8)
    }

    @Test func `what was cut short is not left out`() throws {
        var feed = try liveFeed(at: 0)
        #expect(feed.handle(.entriesCommitted(try entries(1...4))) == .write(try entries(1...4)))
        #expect(feed.handle(.cutShort(after: 2)) == .none)
        feed.leftOut(behind: 0)
        #expect(feed.takeAcknowledgement() == 2)
        #expect(feed.handle(.writable) == .load(after: 2, limit: 4))
    }

    // MARK: Pages that the peer asks for

    @Test
    func `a page that was asked for leaves as it is, and what is new leaves again in its turn`() throws {
        var feed = try liveFeed(at: 4)
        let page = try entries(2...6)
        #expect(feed.handle(.pageRequested(page)) == .writePage(page[...]))
        #expect(feed.handle(.writable) == .none)
        #expect(!feed.hasRequested && feed.written == 4)
        #expect(feed.handle(.entriesCommitted(try entries(5...6))) == .write(try entries(5...6)))
        #expect(feed.handle(.pageRequested([])) == .none)
        // This also applies to entries that the device sent itself, and when the window is full.
        #expect(feed.handle(.entriesCommitted(try entries(7...14))) == .write(try entries(7...14)))
        let own = [try entry(15, from: 1)]
        #expect(feed.handle(.pageRequested(own)) == .writePage(own[...]))
        #expect(feed.handle(.writable) == .none)
        #expect(feed.takeAcknowledgement() == nil)
    }

    @Test
    func `what of a page does not fit leaves before anything else, once there is room`() throws {
        var feed = try liveFeed(at: 6)
        let page = try entries(1...6)
        #expect(feed.handle(.pageRequested(page)) == .writePage(page[...]))
        #expect(feed.handle(.cutShort(after: 2)) == .none)
        #expect(feed.hasRequested)
        let silent: [InboxFeed.Event] = [
            .entriesCommitted(try entries(7...8)), .unwritable, .acknowledged(upTo: 3), .written(upTo: 2), .retryDue,
            self.page(try entries(7...8), head: 8),
        ]
        for event in silent { #expect(feed.handle(event) == .none) }
        #expect(feed.handle(.writable) == .writePage(page[2...]))
        #expect(feed.handle(.cutShort(after: 5)) == .none)
        #expect(feed.handle(.writable) == .writePage(page[5...]))
        // Then the entries that were committed meanwhile follow.
        #expect(feed.handle(.writable) == .load(after: 6, limit: 4))
        #expect(!feed.hasRequested)
        #expect(feed.handle(self.page(try entries(7...8), head: 8)) == .write(try entries(7...8)))
    }

    @Test
    func `a page that was being loaded is loaded again behind one that was asked for`() throws {
        var feed = try feed()
        #expect(feed.handle(.opened(after: 0, head: 3)) == .load(after: 0, limit: 4))
        let asked = try entries(1...2)
        #expect(feed.handle(.pageRequested(asked)) == .writePage(asked[...]))
        #expect(feed.handle(.cutShort(after: 0)) == .none)
        #expect(feed.handle(page(try entries(1...3), head: 3)) == .none)
        #expect(feed.handle(.writable) == .writePage(asked[...]))
        #expect(feed.handle(.writable) == .load(after: 0, limit: 4))
        #expect(feed.handle(page(try entries(1...3), head: 3)) == .write(try entries(1...3)))
        #expect(feed.handle(.writable) == .none)
        #expect(feed.isLive)
    }
}
