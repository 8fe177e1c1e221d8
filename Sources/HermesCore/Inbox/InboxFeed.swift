// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides which entries of the user's inbox a connection writes, and keeps track of the connection's cursors in the
/// inbox. A connection writes only entries that its feed hands out. Does no I/O. The connection's handler owns the
/// feed, and uses it on the event loop of the connection.
///
/// Guarantees: entries are written in order and without a gap. Each entry is written once per connection. If a
/// committed entry is not the next entry to write, the feed loads the entries before it. At most one load is
/// outstanding. At most `window` entries are written and not acknowledged; further entries stay in the store until
/// acknowledgements arrive. Messages of this device that were committed after the login are counted but not written:
/// the device gets receipts for them. If the device had sent such a message over an earlier connection, it sends the
/// message again and gets the receipt.
///
/// Committed entries are written at once if the connection is writable, no load is under way, no requested page waits,
/// the entries follow the last written entry without a gap, and the window has room. Otherwise they are loaded from the
/// store as soon as the connection is writable, no load is under way, no requested page waits, and the window has room.
///
/// A page that the peer asked for (``Event/pageRequested(_:)``) is a repetition. It is written as a whole, before new
/// entries, and does not move the feed's cursors. New entries of the page are written again in their turn. So the feed
/// does not depend on how much of the page the peer kept.
///
/// Usage: attach to the ``DeviceRegistry`` first. Then report ``Event/opened(after:head:)`` with the result of the
/// login. The feed then always loads a first page, which may be empty. Carry out each action. After
/// ``Action/write(_:)``, report ``Event/writable`` or ``Event/unwritable``. Each report returns the next action. Then
/// call ``takeAcknowledgement()`` and pass the result to ``InboxRequests``.
package struct InboxFeed: Sendable {
    package enum Event: Sendable {
        /// The device continues after the seq `after`; the inbox's head is `head`.
        case opened(after: UInt64, head: UInt64)
        /// The load succeeded with this page.
        case pageLoaded(InboxPage)
        /// The load failed. Report ``retryDue`` after a while.
        case pageFailed
        /// It is time to repeat the load.
        case retryDue
        /// Entries were committed (``Attachment/inboxAdvanced(_:)``).
        case entriesCommitted([InboxEntry])
        /// The connection's outbound queue is above its high-water mark.
        case unwritable
        /// The queue is below the mark again.
        case writable
        /// The last ``Action/write(_:)`` or ``Action/writePage(_:)`` was not written completely, because the queue is
        /// full. Only its entries up to this seq were written. The feed hands out the remaining entries again after
        /// ``writable``.
        case cutShort(after: UInt64)
        /// The entries up to this seq have been sent.
        case written(upTo: UInt64)
        /// The peer has acknowledged everything up to this seq. A seq that was never committed has no effect: it
        /// belongs to an inbox that the store has lost.
        case acknowledged(upTo: UInt64)
        /// The peer asked for these entries, whether or not they were already written. Several such pages are written
        /// one after the other.
        case pageRequested([InboxEntry])
        /// A peer that never acknowledges (IMPB) sent a frame. The frame counts as an acknowledgement of everything
        /// that was sent before the frame arrived.
        case peerSpoke
    }

    package enum Action: Sendable, Hashable {
        case none
        /// Read a page: ``InboxRequest/page(after:limit:)``.
        case load(after: UInt64, limit: Int)
        /// Write these entries to the peer. There is at least one entry.
        case write([InboxEntry])
        /// Write these entries, which the peer asked for. There is at least one entry. As after ``write(_:)``, report
        /// ``Event/writable``, ``Event/unwritable`` or ``Event/cutShort(after:)``.
        case writePage(ArraySlice<InboxEntry>)
    }

    package let principal: Principal
    private let window: UInt64
    private let pageSize: Int

    private var isOpen = false
    private var isWritable = true
    private var isLoading = false
    /// Whether the load under way is outdated, so that its entries must be dropped.
    private var isPageStale = false
    private var mustWaitForRetry = false
    /// The newest seq known to be committed.
    package private(set) var head: UInt64 = 0
    /// Whether newer entries may be committed than ``head`` says, because a load has failed.
    private var isHeadUncertain = false
    /// The head when the connection opened. Later messages of this device are not written.
    private var headAtOpen: UInt64 = 0
    /// The last seq that was handed out in ``Action/write(_:)`` or that was skipped.
    package private(set) var written: UInt64 = 0
    /// The last seq that was written and not skipped.
    private var lastVisible: UInt64 = 0
    /// The last seq that has been sent.
    private var completed: UInt64 = 0
    /// The last seq up to which the peer is known to have all entries.
    package private(set) var acknowledged: UInt64 = 0
    private var reported: UInt64 = 0
    /// The entries that the peer asked for and that have not been written.
    private var requested: ArraySlice<InboxEntry> = []
    /// The number of entries of `requested` that were handed out. It is not known yet how many of the handed-out
    /// entries were written.
    private var handedOut = 0
    /// The acknowledged seq, if it is beyond the known head and not checked yet.
    private var claimed: UInt64?
    /// Whether the load under way was requested to check `claimed`.
    private var isClaimAsked = false
    /// Whether the peer acknowledged a seq that was never committed. If so, later acknowledgements beyond the known
    /// head are ignored.
    private var isClaimFalse = false

    /// Creates the feed of a connection.
    ///
    /// - Parameters:
    ///   - principal: the connection's principal.
    ///   - window: the largest number of entries that are written and not acknowledged.
    ///   - pageSize: the largest number of entries in one load.
    package init(principal: Principal, window: Int = 1024, pageSize: Int = 256) {
        self.principal = principal
        self.window = UInt64(max(1, window))
        self.pageSize = max(1, pageSize)
    }

    /// Whether entries that the peer asked for must still be written.
    package var hasRequested: Bool { !requested.isEmpty }

    /// Whether all committed entries were written.
    package var isLive: Bool { isOpen && !isLoading && !isHeadUncertain && written >= head }

    /// Returns the action for an event.
    package mutating func handle(_ event: Event) -> Action {
        switch event {
        case .opened(let after, let head): open(after: after, head: head)
        case .pageLoaded(let page): pageLoaded(page)
        case .pageFailed: pageFailed()
        case .retryDue: retryDue()
        case .entriesCommitted(let entries): committed(entries)
        case .unwritable: setWritable(false)
        case .writable: setWritable(true)
        case .cutShort(let seq): cutShort(after: seq)
        case .written(let seq): completed(upTo: seq)
        case .acknowledged(let seq): acknowledge(upTo: seq)
        case .pageRequested(let entries): pageRequested(entries)
        case .peerSpoke: acknowledge(upTo: completed)
        }
    }

    /// Returns the seq to acknowledge for the device; nil if the seq has not grown since the last call.
    package mutating func takeAcknowledgement() -> UInt64? {
        guard isOpen, acknowledged > reported else { return nil }
        reported = acknowledged
        return acknowledged
    }

    /// Records that the entries after `seq` of the last ``Action/write(_:)`` will never be written, because the peer
    /// cannot receive them. These entries count as acknowledged when all entries before them are acknowledged. If the
    /// write was cut short, call this after ``Event/cutShort(after:)``. Always call it before ``Event/writable`` or
    /// ``Event/unwritable``.
    package mutating func leftOut(behind seq: UInt64) {
        lastVisible = min(lastVisible, max(seq, acknowledged))
        settleSkipped()
    }

    // MARK: Events

    private mutating func open(after: UInt64, head: UInt64) -> Action {
        guard !isOpen else { return .none }
        isOpen = true
        headAtOpen = head
        self.head = max(self.head, head)
        written = min(after, self.head)
        lastVisible = written
        completed = written
        acknowledged = written
        reported = written
        // Load even if no entry seems to wait: an entry may have been committed between the login and the attachment.
        isLoading = true
        return .load(after: written, limit: min(pageSize, Int(clamping: window)))
    }

    private mutating func committed(_ entries: [InboxEntry]) -> Action {
        guard let first = entries.first, let last = entries.last else { return next() }
        head = max(head, last.lastSeq)
        guard isOpen, isWritable, !isLoading, requested.isEmpty else { return next() }
        guard first.seq <= written &+ 1, last.lastSeq > written else { return next() }
        let room = room
        guard room > 0, Self.isContiguous(entries) else { return next() }
        return write(entries.drop { $0.lastSeq <= written }.prefix(Int(clamping: room)))
    }

    private mutating func pageLoaded(_ page: InboxPage) -> Action {
        guard isLoading else { return .none }
        isLoading = false
        isHeadUncertain = false
        head = max(head, page.position.head)
        settleClaim()
        // A page that the peer asked for is written first. The page that was just loaded is loaded again after that.
        if isPageStale || !requested.isEmpty {
            isPageStale = false
            return next()
        }
        let news = page.entries.drop { $0.lastSeq <= written }
        guard let first = news.first else {
            // The entries to load are no longer stored. Report the hole. Otherwise the load would be repeated forever.
            guard page.position.head > written else { return next() }
            return write([expired(through: page.position.head, at: Timestamp(rawValue: 0))])
        }
        if first.seq > written &+ 1 {
            return write([expired(through: first.seq - 1, at: first.committedAt)] + news)
        }
        return write(news)
    }

    private mutating func pageFailed() -> Action {
        guard isLoading else { return .none }
        isLoading = false
        isPageStale = false
        isClaimAsked = false
        isHeadUncertain = true
        mustWaitForRetry = true
        return .none
    }

    private mutating func retryDue() -> Action {
        mustWaitForRetry = false
        return next()
    }

    private mutating func pageRequested(_ entries: [InboxEntry]) -> Action {
        if requested.isEmpty { requested = entries[...] } else { requested += entries }
        // All entries are handed out, regardless of their number: the connection cuts the write short if its queue is
        // full.
        return requested.isEmpty || handedOut > 0 ? .none : writeRequested()
    }

    private mutating func writeRequested() -> Action {
        handedOut = requested.count
        return .writePage(requested)
    }

    private mutating func setWritable(_ isWritable: Bool) -> Action {
        requested = requested.dropFirst(handedOut)
        handedOut = 0
        self.isWritable = isWritable
        return next()
    }

    private mutating func cutShort(after seq: UInt64) -> Action {
        if handedOut > 0 {
            handedOut = 0
            requested = requested.drop { $0.lastSeq <= seq }
        } else if seq < written {
            written = max(seq, acknowledged)
            lastVisible = min(lastVisible, written)
            // The load under way, if any, is outdated: it begins after entries that were not written.
            isPageStale = isPageStale || isLoading
        }
        return setWritable(false)
    }

    private mutating func completed(upTo seq: UInt64) -> Action {
        completed = max(completed, min(seq, written))
        if completed >= lastVisible { completed = written }
        return .none
    }

    private mutating func acknowledge(upTo seq: UInt64) -> Action {
        guard isOpen else { return .none }
        if seq > head {
            guard !isClaimFalse else { return next() }
            claimed = claimed ?? seq
        } else {
            take(upTo: seq)
        }
        return next()
    }

    private mutating func take(upTo seq: UInt64) {
        acknowledged = max(acknowledged, seq)
        // The peer may have fetched entries that were not written yet.
        if acknowledged > written {
            written = acknowledged
            lastVisible = acknowledged
            isPageStale = isPageStale || isLoading
        }
        completed = max(completed, acknowledged)
        settleSkipped()
    }

    /// Checks `claimed` against the inbox's head, which arrived with a page. The check is needed because a peer may
    /// receive a committed entry before this feed learns of the entry.
    private mutating func settleClaim() {
        guard let seq = claimed else { return }
        if seq <= head {
            take(upTo: seq)
        } else if !isClaimAsked {
            return
        } else {
            isClaimFalse = true
        }
        claimed = nil
        isClaimAsked = false
    }

    // MARK: Arithmetic

    private var room: UInt64 {
        let inFlight = written - min(written, acknowledged)
        return window - min(window, inFlight)
    }

    private mutating func next() -> Action {
        guard requested.isEmpty else { return isWritable && handedOut == 0 ? writeRequested() : .none }
        if claimed != nil, isOpen, !isLoading, !mustWaitForRetry {
            isLoading = true
            isClaimAsked = true
            // If there is no room for entries, the page is loaded only to learn the head.
            isPageStale = !isWritable || room == 0
            return .load(after: written, limit: min(pageSize, max(1, Int(clamping: room))))
        }
        guard isOpen, isWritable, !isLoading, !mustWaitForRetry, room > 0 else { return .none }
        guard written < head || isHeadUncertain else { return .none }
        isLoading = true
        return .load(after: written, limit: min(pageSize, Int(clamping: room)))
    }

    private mutating func write(_ entries: some Collection<InboxEntry>) -> Action {
        guard let last = entries.map(\.lastSeq).last else { return next() }
        written = last
        let visible = entries.filter { !isOwnEcho($0) }
        if let lastSeq = visible.last?.lastSeq { lastVisible = lastSeq }
        if completed >= lastVisible { completed = written }
        settleSkipped()
        return visible.isEmpty ? next() : .write(visible)
    }

    /// Counts skipped entries as acknowledged when all entries before them are acknowledged.
    private mutating func settleSkipped() {
        if acknowledged >= lastVisible { acknowledged = max(acknowledged, written) }
    }

    private func isOwnEcho(_ entry: InboxEntry) -> Bool {
        guard entry.seq > headAtOpen, case .message(let message) = entry.event else { return false }
        return message.sender == principal.user && message.senderDevice == principal.device
    }

    private func expired(through seq: UInt64, at time: Timestamp) -> InboxEntry {
        InboxEntry(seq: written + 1, committedAt: time, event: .expired(through: seq))
    }

    private static func isContiguous(_ entries: [InboxEntry]) -> Bool {
        var expected: UInt64?
        for entry in entries {
            if let expected, entry.seq != expected { return false }
            expected = entry.lastSeq &+ 1
        }
        return true
    }
}
