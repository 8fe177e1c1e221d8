// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Handles the entries of the account's inbox.
extension DelimitedLink {
    /// The cursor up to which the app has nothing left to take.
    var place: Cursor { Cursor(epoch: inbox.epoch, seq: inbox.taken) }

    /// Begins to record the place in the store if the place has changed. The store already records the entries that
    /// the app has taken. The device's own messages and skipped entries also advance the place, and the server may
    /// delete these entries. If the store did not record the place after them, the next run would report these entries
    /// to the app as lost.
    private mutating func notePlace() {
        let place = place
        guard let owner, let keptPlace, keptPlace != place else { return }
        self.keptPlace = place
        keepPlace?(place, newest, owner, false)
    }

    private mutating func event(_ entry: Entry, seq: UInt64) -> Event {
        Event(
            epoch: inbox.epoch,
            seq: seq,
            incarnation: incarnation,
            event: entry.event,
            source: entry.source,
            isRepeat: !seen.insert(entry.event),
            bytes: entry.bytes
        )
    }

    mutating func arrived(_ event: Hermes_V1_Event, now: NIODeadline, effects: inout Effects) {
        var to = event.seq
        var entry: Entry? = Entry(
            event: InboxEvent(event),
            serverTime: event.serverTimeMs,
            source: keepsSources ? event : nil,
            bytes: frameBytes
        )
        var isExpired = false
        if case .expired(let expired) = event.event {
            to = max(to, expired.toSeq)
            isExpired = true
        }
        if case .message(let message) = event.event, message.own, !message.clientID.isEmpty,
            outgoing.contains(ExactText(message.clientID)) || sending.values.contains(ExactText(message.clientID))
        {
            // This device sent the message before the connection broke or the app ended. The receipt arrives when the
            // message is sent again.
            entry = nil
        }
        KnownEntry.note(KnownEntry(event), in: &newest)
        let before = inbox.received
        inbox.arrived(entry, seq: event.seq, to: to, bytes: frameBytes, now: now, output: &outputs)
        if isExpired, before < to, inbox.received >= to { inbox.noteLoss(of: max(event.seq, before + 1)...to) }
        drain(&effects)
    }

    /// Turns the tracker's outputs into effects.
    mutating func drain(_ effects: inout Effects) {
        notePlace()
        if inbox.counts != InboxCounts() {
            statistics.counter.noticed(inbox.counts, date: WallClock.milliseconds())
            inbox.counts = InboxCounts()
        }
        for output in outputs {
            switch output {
            case .deliver(let seq, let entry):
                if case .gap = entry.event.kind {
                    // A gap is reported to the app, but does not count as a received entry.
                } else {
                    let date = WallClock.milliseconds()
                    let latency = statistics.latency(serverTime: entry.serverTime, date: date)
                    statistics.counter.received(latency: latency, date: date)
                }
                effects.append(.event(event(entry, seq: seq)))
            case .missed(let range):
                let gap = InboxEvent(.gap(range))
                effects.append(.event(event(Entry(event: gap, serverTime: 0, bytes: 0), seq: range.upperBound)))
            case .synchronize(let afterSeq):
                var request = Hermes_V1_Synchronize()
                request.afterSeq = afterSeq
                effects.append(.send(.synchronize(request), id: ID.synchronize))
            case .acknowledge(let upToSeq):
                var request = Hermes_V1_Acknowledge()
                request.upToSeq = upToSeq
                effects.append(.send(.acknowledge(request)))
            }
        }
        outputs.removeAll(keepingCapacity: true)
    }
}
