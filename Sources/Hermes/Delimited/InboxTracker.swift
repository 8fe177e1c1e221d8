// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import NIOCore

/// Puts inbox entries in order, so that each entry reaches the app once, although entries can arrive twice or late.
/// Decides which entries may be acknowledged. ``SeenEntries`` recognizes entries that arrive again under new seqs.
/// ``InboxJournal`` records the taken entries for the next run.
///
/// Seqs are contiguous per user. The tracker drops an entry that has already arrived. A hole is a range of missing
/// seqs. If an entry arrives after a hole, the tracker first waits a moment for the missing entries. Often a missing
/// entry is this device's own message, whose receipt is under way. If entries are still missing after the wait, the
/// tracker requests them from the server.
package struct InboxTracker<Entry: Sendable>: Sendable {
    /// The way in which a session continues the inbox of the previous session.
    package enum Resumption: Hashable, Sendable {
        /// The session continues after the last entry.
        case goesOn
        /// The server began a new inbox, in which the earlier seqs mean nothing.
        case newInbox
        /// The server lost entries after this seq and assigns their seqs to new entries.
        case rewound(to: UInt64)
    }

    /// An instruction to the tracker's owner.
    package enum Output: Sendable {
        /// Hand this entry to the app.
        case deliver(seq: UInt64, Entry)
        /// Hand the app a gap for these entries, which the server no longer has. The seq of the gap is the last of
        /// these seqs.
        case missed(ClosedRange<UInt64>)
        /// Ask for the entries after this seq.
        case synchronize(afterSeq: UInt64)
        /// Tell the server that the app has taken everything up to this seq.
        case acknowledge(upToSeq: UInt64)
    }

    private struct Span: Sendable {
        let to: UInt64
        /// The entry; nil if it is not for the app, for example if it is this device's own message.
        let entry: Entry?
        let bytes: Int
    }

    /// The epoch of the seqs; 0 before the first login.
    package private(set) var epoch: UInt64 = 0
    /// The largest seq such that all entries up to it have arrived.
    private(set) var received: UInt64 = 0
    private var head: UInt64 = 0
    private var ahead: [UInt64: Span] = [:]
    /// The seqs of the entries that were handed to the app and that it has not taken yet, in order.
    private var untaken = Deque<UInt64>()
    private var acknowledged: UInt64 = 0
    private var acknowledgeAt: NIODeadline?
    private var repairAt: NIODeadline?
    private var isPaused = false
    /// Whether there is no connection over which missing entries could be requested.
    private var isOffline = false
    /// Whether the entries that wait for the app take too much memory. While this is true, the tracker keeps no
    /// further entries.
    package var isFull = false { didSet { if isFull { isPaused = true } } }
    private var aheadBytes: Int { ahead.values.reduce(0) { $0 + $1.bytes } }
    /// The counts since the owner last reset them.
    var counts = InboxCounts()
    /// The seq up to which missing seqs have been counted.
    private var countedTo: UInt64 = 0

    /// The largest number of entries that wait after a hole. Further entries are dropped, and requested again later.
    static var maxAhead: Int { 1024 }
    static var maxAheadBytes: Int { 16 * 1_048_576 }
    /// The time to wait before the tracker requests the entries that are missing in a hole.
    static var grace: TimeAmount { .milliseconds(300) }
    /// The time after which a request for missing entries is repeated.
    static var repairTimeout: TimeAmount { .seconds(5) }
    /// The longest delay of an acknowledgement.
    static var acknowledgeDelay: TimeAmount { .milliseconds(50) }
    /// The number of newly taken entries at which an acknowledgement is sent at once.
    static var acknowledgeCount: UInt64 { 64 }
    /// The number of untaken entries above which the tracker keeps no further entries.
    static var pauseAbove: Int { 4096 }
    /// The number of untaken entries below which the tracker asks for the dropped entries again.
    static var resumeBelow: Int { 1024 }
    /// A hole of this many seqs was never assigned, because no inbox gets that many entries. The counts leave such a
    /// hole out. A server that has lost the newest seq of an inbox continues 2³² seqs above all seqs that it knows. The
    /// client may know some higher seqs than the server, so this limit is lower.
    static var uncounted: UInt64 { 1 << 31 }

    /// Creates a tracker that continues the inbox of an earlier run.
    package init(epoch: UInt64 = 0, taken: UInt64 = 0) {
        self.epoch = epoch
        // `received` is never `UInt64.max`, so adding 1 cannot overflow.
        received = min(taken, .max - 1)
        acknowledged = received
    }

    /// The largest seq such that the app has taken all entries up to it.
    package var taken: UInt64 { untaken.first.map { $0 - 1 } ?? received }

    /// The time at which the owner must call `deadlineReached`; nil if there is none.
    package var nextDeadline: NIODeadline? {
        guard let acknowledgeAt, let repairAt else { return acknowledgeAt ?? repairAt }
        return min(acknowledgeAt, repairAt)
    }

    /// Handles the beginning of a session. The server continues after `taken`. In a new epoch, or if it has lost
    /// entries, it continues after the last entry that it has recorded as acknowledged.
    ///
    /// - Parameter hasLostEntries: whether the server says that it has lost entries and assigns their seqs to others.
    ///   The client does not know which of its entries the server has lost, so all entries after the server's record
    ///   count as not received.
    package mutating func resumed(
        epoch: UInt64,
        serverAcknowledged: UInt64,
        head: UInt64,
        hasLostEntries: Bool = false,
        now: NIODeadline
    ) -> Resumption {
        var resumption = Resumption.goesOn
        if epoch != self.epoch {
            if self.epoch != 0 { resumption = .newInbox }
            let (counts, isFull) = (counts, isFull)
            // `taken` is not above the head, because later entries must not count as received.
            self = InboxTracker(epoch: epoch, taken: min(serverAcknowledged, head))
            self.counts = counts
            self.isFull = isFull
        } else if head < received || hasLostEntries {
            let last = min(received, hasLostEntries ? min(serverAcknowledged, head) : head)
            resumption = .rewound(to: last)
            if head < received { counts.lost &+= Self.counted(received - head) }
            received = last
            countedTo = min(countedTo, last)
            while let seq = untaken.last, seq > last { untaken.removeLast() }
            ahead = [:]
        }
        self.head = max(head, received)
        acknowledged = min(taken, serverAcknowledged)
        // Entries after a hole are kept. Some of them may stand for this device's own messages. Their receipts are not
        // sent again, and the messages themselves must not reach the app.
        ahead = ahead.filter { $0.value.to > received }
        acknowledgeAt = taken > acknowledged ? now + Self.acknowledgeDelay : nil
        // The server sends the other entries by itself; if it does not, the tracker asks for them.
        repairAt = self.head > received ? now + Self.repairTimeout : nil
        isPaused = isFull || untaken.count > Self.pauseAbove
        isOffline = false
        return resumption
    }

    /// Handles the loss of the connection. In the next session, the server sends the missing entries.
    package mutating func lost() {
        isOffline = true
        repairAt = nil
    }

    /// Handles the entries from `seq` to `to`, which arrived in one frame of `bytes` bytes. `entry` is the entry that
    /// the app gets for them; nil if it gets nothing.
    package mutating func arrived(
        _ entry: Entry?,
        seq: UInt64,
        to: UInt64,
        bytes: Int = 0,
        now: NIODeadline,
        output: inout [Output]
    ) {
        guard to >= seq, seq > 0, to < .max else { return }
        guard to > received, ahead[seq].map({ $0.to < to }) ?? true else {
            if entry != nil { counts.duplicates &+= 1 }
            return
        }
        head = max(head, to)
        if seq <= received + 1 {
            guard !isPaused || entry == nil else { return }
            noteArrival(received + 1...to)
            accept(entry, seq: received + 1, to: to, output: &output)
            while let span = ahead.removeValue(forKey: received + 1) {
                // The entry is dropped, and requested again later. If it stayed, its repetition would be dropped as a
                // duplicate.
                guard !isPaused || span.entry == nil else {
                    noteDrop(to: span.to)
                    break
                }
                accept(span.entry, seq: received + 1, to: span.to, output: &output)
            }
            ahead = ahead.isEmpty ? ahead : ahead.filter { $0.value.to > received }
            if received >= head {
                repairAt = nil
            } else if repairAt != nil {
                repairAt = now + (ahead.isEmpty ? Self.repairTimeout : Self.grace)
            }
            acknowledgeLater(now: now, output: &output)
        } else {
            if ahead.count < Self.maxAhead, bytes == 0 || aheadBytes + bytes <= Self.maxAheadBytes {
                noteArrival(seq...to)
                ahead[seq] = Span(to: to, entry: entry, bytes: bytes)
            }
            if !isPaused { repairAt = min(repairAt ?? .distantFuture, now + Self.grace) }
        }
    }

    /// Handles the server's answer to `synchronize`: the range of entries that the server has. The entries themselves
    /// arrive later.
    package mutating func synchronized(
        epoch: UInt64,
        head: UInt64,
        oldest: UInt64,
        now: NIODeadline,
        output: inout [Output]
    ) {
        guard epoch == self.epoch else { return }
        self.head = max(self.head, head)
        // While the inbox is paused, no gaps are reported: the tracker asks for these entries again later.
        while oldest > received + 1, !isPaused {
            // Entries that arrived after the hole are not lost.
            let next = ahead.keys.min() ?? .max
            let last = min(oldest - 1, self.head, next - 1)
            guard last > received else { return }
            let hole = received + 1...last
            // The app must take the gap like an entry. So if the app stops before it takes the gap, the gap is reported
            // again in the app's next run.
            untaken.append(hole.upperBound)
            if untaken.count > Self.pauseAbove { isPaused = true }
            output.append(.missed(hole))
            arrived(nil, seq: hole.lowerBound, to: hole.upperBound, now: now, output: &output)
            noteLoss(of: hole)
        }
    }

    /// Notes that the app has taken an event. This may make room for dropped entries.
    ///
    /// - Parameter seq: the seq up to which the app has taken all entries; 0 if the event is not an entry of this
    ///   inbox.
    package mutating func taken(seq: UInt64, now: NIODeadline, output: inout [Output]) {
        while let first = untaken.first, first <= seq { untaken.removeFirst() }
        madeRoom(now: now, output: &output)
    }

    /// Notes that an event was not handed to the app, because the app has already got the same entry under another
    /// seq. Earlier entries stay untaken, because the store may not have recorded them yet.
    ///
    /// - Parameter seq: the seq of the event; 0 if the event is not an entry of this inbox.
    package mutating func skipped(seq: UInt64, now: NIODeadline, output: inout [Output]) {
        if let index = untaken.firstIndex(of: seq) { untaken.remove(at: index) }
        madeRoom(now: now, output: &output)
    }

    /// Requests the dropped entries if there is room for them now, and sets the time of the acknowledgement.
    private mutating func madeRoom(now: NIODeadline, output: inout [Output]) {
        if untaken.count > Self.pauseAbove { isPaused = true }
        if isPaused, !isFull, untaken.count < Self.resumeBelow {
            isPaused = false
            if head > received, !isOffline {
                output.append(.synchronize(afterSeq: received))
                repairAt = now + Self.repairTimeout
            }
        }
        acknowledgeLater(now: now, output: &output)
    }

    /// Sends the acknowledgement and the request for missing entries if their times have come.
    package mutating func deadlineReached(now: NIODeadline, output: inout [Output]) {
        if let at = acknowledgeAt, at <= now { acknowledgeNow(output: &output) }
        if let at = repairAt, at <= now {
            repairAt = nil
            guard head > received, !isPaused else { return }
            noteGap()
            output.append(.synchronize(afterSeq: received))
            repairAt = now + Self.repairTimeout
        }
    }

    /// Sends the pending acknowledgement at once.
    package mutating func acknowledgeNow(output: inout [Output]) {
        acknowledgeAt = nil
        guard taken > acknowledged else { return }
        acknowledged = taken
        output.append(.acknowledge(upToSeq: acknowledged))
    }

    private mutating func accept(_ entry: Entry?, seq: UInt64, to: UInt64, output: inout [Output]) {
        received = to
        guard let entry else { return }
        untaken.append(to)
        if untaken.count > Self.pauseAbove { isPaused = true }
        output.append(.deliver(seq: to, entry))
    }

    /// Returns the number of seqs to count; 0 if the seqs are a hole that the counts leave out.
    private static func counted(_ number: UInt64) -> UInt64 { number < uncounted ? number : 0 }

    /// Counts all seqs that are missing now, except those that were counted before. Counts nothing if these seqs
    /// contain a hole that the counts leave out.
    private mutating func noteGap() {
        let begin = max(received, countedTo)
        guard head > begin else { return }
        let here = ahead.reduce(0) { sum, span in
            span.value.to > begin ? sum &+ (span.value.to - max(span.key - 1, begin)) : sum
        }
        let missing = (head - begin) &- min(here, head - begin)
        guard missing < Self.uncounted else { return }
        counts.gaps &+= missing
        countedTo = head
    }

    /// Counts arrived entries as repaired, if they had been counted as missing.
    private mutating func noteArrival(_ seqs: ClosedRange<UInt64>) {
        guard seqs.lowerBound <= countedTo else { return }
        counts.repaired &+= Self.counted(min(seqs.upperBound, countedTo) - seqs.lowerBound + 1)
    }

    /// Counts the entries after `received` as missing again, because they were dropped after their arrival was counted.
    private mutating func noteDrop(to last: UInt64) {
        if received < countedTo { counts.gaps &+= Self.counted(min(last, countedTo) - received) }
    }

    /// Counts entries as lost. Called after `arrived` has handled the range of the lost entries and counted it as
    /// repaired.
    mutating func noteLoss(of seqs: ClosedRange<UInt64>) {
        let before = seqs.lowerBound <= countedTo ? min(seqs.upperBound, countedTo) - seqs.lowerBound + 1 : 0
        let known = Self.counted(before)
        // Of a hole that the counts leave out, only the seqs that were counted as missing before count as lost.
        let lost = max(known, Self.counted(seqs.upperBound - seqs.lowerBound + 1))
        counts.gaps &+= lost - known
        counts.lost &+= lost
        // Expired entries do not repair the gap.
        counts.repaired &-= min(known, counts.repaired)
    }

    private mutating func acknowledgeLater(now: NIODeadline, output: inout [Output]) {
        guard taken > acknowledged else { return }
        if taken - acknowledged >= Self.acknowledgeCount {
            acknowledgeNow(output: &output)
        } else if acknowledgeAt == nil {
            acknowledgeAt = now + Self.acknowledgeDelay
        }
    }
}
