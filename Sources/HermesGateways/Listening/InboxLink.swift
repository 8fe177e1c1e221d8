// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Logging
import NIOCore

/// Connects an authenticated connection to its user's inbox: attaches it to the core, carries out the actions of
/// ``InboxFeed``, makes the peer's requests (``ask(_:then:)``), and detaches at the end. Every protocol with an inbox
/// uses this class. It is used only on the connection's loop.
package final class InboxLink {
    /// Writes an entry to the peer.
    package typealias Writer = (InboxEntry) -> Void

    /// The number of entries of a requested page that are written between two checks of the time. Writing an entry
    /// takes about 10 µs.
    private static let entriesPerLook = 16

    package let principal: Principal
    package let attachment: DeviceAttachment
    let connection: Connection
    let messenger: Messenger
    private let write: Writer
    /// The number of entries that the peer can accept now; nil if the protocol has no such limit. Requested entries
    /// do not count.
    private let freeSlots: (() -> Int)?
    private var feed: InboxFeed
    private var isClosed = false
    private var hasLoaded = false
    private var retryPause = RetryPause()
    /// The seq of the newest entry at the login.
    private var headAtOpen: UInt64 = 0
    /// The seq of the last entry that was written. Skipped entries do not count.
    private var lastWrittenSeq: UInt64 = 0
    /// Whether the protocol's side left out the entry that is being written, or the one that was written last.
    private var isLeftOut = false
    /// The bytes of a page that the peer requested, while the page is being written; nothing is read from the peer
    /// meanwhile.
    private var leavingBytes: Int?
    /// Whether the entry that is being written belongs to a page that the peer requested. Such an entry may be written
    /// before earlier entries that the peer does not have yet, so the acknowledgement of the entry does not include
    /// those earlier entries.
    private(set) var isRepeating = false
    /// Whether the rest of a requested page waits for the connection's turn.
    private var waitsForTurn = false

    /// - Parameters:
    ///   - window: the largest number of entries that may be written but not yet acknowledged.
    ///   - freeSlots: the number of entries that the peer can accept now; nil if the protocol has no such limit.
    ///     After a change, call ``roomChanged()``. Entries that the peer requested are written regardless.
    ///   - write: called with each entry, in order. Its reference to the protocol's side should be `unowned` or
    ///     `weak`.
    package init(
        principal: Principal,
        connection: Connection,
        messenger: Messenger,
        window: Int = 1_024,
        directAddress: DirectAddress? = nil,
        freeSlots: (() -> Int)? = nil,
        write: @escaping Writer
    ) {
        self.principal = principal
        self.connection = connection
        self.messenger = messenger
        self.write = write
        self.freeSlots = freeSlots
        attachment = DeviceAttachment(
            principal: principal,
            connection: connection,
            directAddress: directAddress
        )
        feed = InboxFeed(principal: principal, window: window)
    }

    /// Attaches the connection, and begins to deliver the entries after `cursor`. Another connection of the same device
    /// ends.
    ///
    /// - Parameters:
    ///   - cursor: the last entry that the device has.
    ///   - head: the inbox's head at the login.
    package func open(after cursor: UInt64, head: UInt64) {
        connection.chargeInTheEnd(.watchers(messenger.devices.attach(attachment, by: connection.address)))
        headAtOpen = head
        // Opening always reads the store, and so finds entries that were committed between the login and the
        // attachment.
        handle(.opened(after: cursor, head: head))
    }

    /// Detaches the connection. Later entries are ignored.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        pageHasLeft()
        connection.leaves(attachment, messenger.devices)
    }

    /// Handles committed entries. Called from ``ConnectionEvents/inboxAdvanced(_:)``.
    package func advanced(_ entries: [InboxEntry]) { handle(.entriesCommitted(entries)) }

    /// Notes that the peer cannot accept the entry that is being written. Called from `write`. The entry counts as
    /// acknowledged when the peer has acknowledged all entries before it.
    package func leftOut() { isLeftOut = true }

    /// The seq up to which the peer has all entries.
    package var acknowledgedSeq: UInt64 { feed.acknowledged }

    /// Continues to write. Called from ``ConnectionEvents/becameWritable()``.
    package func becameWritable() {
        if !waitsForTurn { handle(takesMore ? .writable : .unwritable) }
    }

    /// Continues to write, because the peer may be able to accept another entry now.
    func roomChanged() {
        if !waitsForTurn { handle(writability) }
    }

    /// Notes that the peer has all entries up to this seq.
    package func acknowledged(upTo seq: UInt64) { handle(.acknowledged(upTo: seq)) }

    /// Notes that a peer whose protocol has no acknowledgements has sent a frame. So the peer has every entry that
    /// was sent before the frame.
    package func peerSpoke() { handle(.peerSpoke) }

    /// Notes that the operating system has taken all entries up to this seq.
    package func written(upTo seq: UInt64) { handle(.written(upTo: seq)) }

    /// Writes the entries that the peer requested. If not all of them fit at once, nothing is read from the peer
    /// until all of them have been written.
    func write(requested page: InboxPage) {
        guard !isClosed else { return }
        handle(.pageRequested(page.entries))
        guard feed.hasRequested, !isClosed, leavingBytes == nil else { return }
        connection.hold()
        connection.requestStarted(bytes: page.bytes)
        leavingBytes = page.bytes
    }

    private func pageHasLeft() {
        guard let bytes = leavingBytes else { return }
        leavingBytes = nil
        connection.requestAnswered(bytes: bytes)
        connection.release()
    }

    private func handle(_ event: InboxFeed.Event) {
        guard !isClosed else { return }
        var action = feed.handle(event)
        while true {
            switch action {
            case .none:
                if let seq = feed.takeAcknowledgement() { messenger.inbox.acknowledge(principal, upTo: seq) }
                if !feed.hasRequested { pageHasLeft() }
                return
            case .writePage(let entries):
                let rest = writeWhatFits(entries)
                guard !isClosed else { return }
                // The page is written. The peer may still be unable to accept further entries.
                let next: InboxFeed.Event = connection.keepsUp && hasFreeSlot ? .writable : .unwritable
                action = feed.handle(rest.map { .cutShort(after: $0.seq - 1) } ?? next)
                if rest == nil, case .none = action, feed.hasRequested { action = feed.handle(writability) }
            case .load(let after, let limit):
                load(after: after, limit: max(1, min(limit, freeSlots?() ?? .max)))
                action = .none
            case .write(let entries):
                let rest = deliverWhatFits(entries)
                guard !isClosed else { return }
                // If the peer keeps up, the next action reads more entries from the store.
                if let rest {
                    action = feed.handle(.cutShort(after: rest.seq - 1))
                    if isLeftOut { feed.leftOut(behind: lastWrittenSeq) }
                } else {
                    if isLeftOut { feed.leftOut(behind: lastWrittenSeq) }
                    action = feed.handle(writability)
                }
            }
        }
    }

    private var writability: InboxFeed.Event { connection.keepsUp && takesMore ? .writable : .unwritable }

    private var takesMore: Bool { feed.hasRequested || hasFreeSlot }

    private var hasFreeSlot: Bool { freeSlots.map { $0() > 0 } ?? true }

    /// Writes the requested entries again. This does not count as a delivery.
    ///
    /// - Returns: the first entry that was not written; nil if all entries were written.
    private func writeWhatFits(_ entries: ArraySlice<InboxEntry>) -> InboxEntry? {
        isRepeating = true
        defer { isRepeating = false }
        for (index, entry) in entries.enumerated() {
            guard connection.hasRoom else { return entry }
            if index > 0, index % Self.entriesPerLook == 0, !connection.loop.hasTime() {
                goOnInTurn()
                return entry
            }
            write(entry)
            if isClosed { return nil }
        }
        return nil
    }

    /// Lets other connections have their turn before the rest of a page is written.
    private func goOnInTurn() {
        waitsForTurn = true
        connection.loop.inTurn { [self] in
            waitsForTurn = false
            handle(writability)
        }
    }

    /// Writes the entries that fit. The others stay in the store, so no entry is lost.
    ///
    /// - Returns: the first entry that was not written; nil if all entries were written.
    private func deliverWhatFits(_ entries: [InboxEntry]) -> InboxEntry? {
        isLeftOut = false
        // The entries that were written in succession, without a left-out entry between them.
        var run = 0..<0
        defer { noteDelivery(entries[run]) }
        for (index, entry) in entries.enumerated() {
            guard connection.hasRoom, hasFreeSlot else { return entry }
            isLeftOut = false
            write(entry)
            if isClosed { return nil }
            if isLeftOut {
                noteDelivery(entries[run])
                run = index..<index
            } else {
                lastWrittenSeq = entry.lastSeq
                run = (run.isEmpty ? index : run.lowerBound)..<index + 1
            }
        }
        return nil
    }

    private func noteDelivery(_ entries: ArraySlice<InboxEntry>) {
        guard !entries.isEmpty else { return }
        let count = entries.count(where: { !$0.isHole })
        connection.tally.deliveries += count
        connection.tally.messagesOut += count
        messenger.traces.delivered(entries, behind: headAtOpen, to: principal, by: connection.listener.name)
    }

    /// Reads a page of the inbox. The read runs in a task; its result is posted to this loop.
    private func load(after: UInt64, limit: Int) {
        let loop = connection.loop
        let link = loop.bound(self)
        // The first load holds the connection, so that a peer that opens and closes its inbox again and again waits for
        // each load.
        let isFirst = !hasLoaded
        hasLoaded = true
        if isFirst { connection.hold() }
        messenger.inbox.deliver(
            to: principal.user,
            after: after,
            limit: limit,
            head: feed.head,
            source: connection.source(of: principal)
        ) { result in
            loop.post(
                .run {
                    link.value.loaded(result)
                    if isFirst { link.value.connection.release() }
                }
            )
        }
    }

    private func loaded(_ result: Result<InboxReply, HermesError>) {
        if case .success(let reply) = result, let cost = reply.cost {
            connection.chargeInTheEnd(.page(entries: cost.entries))
            connection.chargeRead(cost.bytes)
        }
        guard !isClosed else { return }
        switch result.map(\.answer) {
        case .success(.page(let page)):
            retryPause.succeeded()
            handle(.pageLoaded(page))
        case .success(.history), .success(.conversations), .success(.done):
            assertionFailure("not a page")
            handle(.pageFailed)
        case .failure(let error):
            connection.listener.noteFailedRead(of: "an inbox", error, now: messenger.time.uptime())
            handle(.pageFailed)
            let loop = connection.loop.eventLoop.assumeIsolated()
            loop.scheduleTask(in: retryPause.next(after: error)) { [self] in handle(.retryDue) }
        }
    }
}
