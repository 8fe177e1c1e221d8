// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// The connection's view of its session's queue: the part that is in memory, and the range of numbers that is in the
/// store.
final class MQTTDurableQueue {
    enum Next {
        /// Send the message that ``MQTTDurableQueue/takeFirst()`` returns.
        case publication
        /// Send PUBREL for the message with this number. The client received the message over an earlier connection,
        /// but did not complete it.
        case release(UInt64)
        /// Wait: nothing can be sent now.
        case nothing
        /// Read the messages after this number from the store.
        case load(after: UInt64)
    }

    /// The number of messages that are read from the store at once.
    static let pageSize = 512
    /// The number of messages in memory at which new messages are no longer kept. The new messages are read from the
    /// store later. The last batch may exceed this number.
    static let maxWaiting = 2_048
    /// The bytes of messages in memory at which new messages are no longer kept. The last batch may exceed this number.
    static let maxWaitingBytes = 1 << 20
    /// The largest number of messages that may wait to move to other members of their shared subscriptions. While this
    /// many messages wait, only PUBREL is sent, and no further messages. Otherwise one turn could submit a move for
    /// each message of a long queue, and all of these messages would have to be remembered if the store fails.
    static let maxLeaving = 128

    /// The number up to which messages were sent over an earlier connection.
    let sentBefore: UInt64
    /// The number up to which messages were queued before this connection.
    let waitedBefore: UInt64
    /// The number up to which messages were queued while the account had another name.
    let renamedAt: UInt64
    /// The numbers of messages for which PUBREL must still be sent again, in ascending order.
    var releasesLeft: ArraySlice<UInt64> = []
    var isLoading = false
    /// Whether the store has failed and is read again only after a pause.
    var mustWaitForRetry = false
    var retryPause = RetryPause()
    /// The number of messages that wait to move to other members of their shared subscriptions.
    var leaving = 0
    /// The newest number whose message was written to this connection or to an earlier one.
    private(set) var writtenUpTo: UInt64
    private var waiting: Deque<QueuedPublication> = []
    /// The number of messages that were taken since ``waiting`` was last empty.
    private var taken = 0
    /// The bytes of waiting messages.
    private(set) var bytes = 0
    /// The last number that is in ``waiting`` or was taken from it.
    private var known: UInt64 = 0
    /// The newest number in the store.
    private var head: UInt64

    init(_ opening: DurableOpening) {
        sentBefore = opening.sentUpTo
        writtenUpTo = opening.sentUpTo
        head = opening.head
        waitedBefore = opening.head
        renamedAt = opening.renamedAt
        // PUBREL is sent again for messages that the client had received, but not completed [MQTT-4.4.0-1].
        releasesLeft = opening.released[...]
    }

    /// The number of messages that wait to be sent, in memory and in the store.
    var queuedCount: Int { waiting.count + Int(clamping: head - min(head, max(known, sentBefore))) }

    func committed(_ publications: [QueuedPublication]) {
        guard let last = publications.last, let first = publications.first else { return }
        head = max(head, last.seq)
        guard first.seq == known + 1, !isLoading, waiting.count < Self.maxWaiting,
            bytes < Self.maxWaitingBytes
        else { return }
        waiting.append(contentsOf: publications)
        for queued in publications { bytes += queued.weight }
        known = last.seq
    }

    func wrote(_ number: UInt64) { writtenUpTo = max(writtenUpTo, number) }

    func advanced(to head: UInt64) { self.head = max(self.head, head) }

    func loaded(_ page: DurablePage) {
        if page.publications.first.map({ $0.seq > known }) ?? false {
            waiting.append(contentsOf: page.publications)
            bytes += page.weight
        } else {
            for queued in page.publications where queued.seq > known {
                waiting.append(queued)
                bytes += queued.weight
            }
        }
        known = max(known, page.upTo)
    }

    /// Returns what to do next.
    ///
    /// - Parameter most: the highest number that the window allows. A message with a higher number waits until the
    ///   oldest message in the window is complete.
    func next(notAbove most: UInt64) -> Next {
        let first = waiting.first?.seq
        if let release = releasesLeft.first, first.map({ $0 > release }) ?? true {
            guard known >= release || first != nil else { return load() }
            guard release <= most else { return .nothing }
            releasesLeft.removeFirst()
            return .release(release)
        }
        guard let first else { return known < head ? load() : .nothing }
        return first <= most ? .publication : .nothing
    }

    private func load() -> Next { mustWaitForRetry ? .nothing : .load(after: known) }

    /// Removes and returns the message that ``next(notAbove:)`` has announced.
    func takeFirst() -> QueuedPublication {
        let queued = waiting.removeFirst()
        bytes -= queued.weight
        taken += 1
        if waiting.isEmpty {
            // Frees the memory of a long queue.
            if taken > 64 { waiting = [] }
            taken = 0
        }
        return queued
    }
}
