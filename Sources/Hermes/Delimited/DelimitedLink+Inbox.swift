// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

// MARK: - The inbox
extension DelimitedLink {
    /// Handles the beginning of a session, in which the server continues the inbox, has a new inbox, or has lost
    /// entries.
    mutating func inboxBegan(_ session: Hermes_V1_Session, now: NIODeadline, effects: inout Effects) {
        if let owner, owner != session.uid { changeOwner(&effects) }
        owner = session.uid
        isOwnerCertain = true
        let resumption = inbox.resumed(
            epoch: session.epoch,
            serverAcknowledged: session.acknowledgedSeq,
            head: session.headSeq,
            now: now
        )
        switch resumption {
        case .goesOn: return
        case .newInbox: carried = nil
        case .rewound(let head):
            // Waiting events whose seqs are not above the new head stay valid.
            carried = (since: carried?.since ?? incarnation, upTo: min(carried?.upTo ?? head, head))
            keepRewound?(Cursor(epoch: session.epoch, seq: head))
        }
        incarnation &+= 1
        effects.append(.event(Event(epoch: 0, seq: 0, event: InboxEvent(.inboxReset))))
    }

    /// Drops the data of the previous account, because another account logged in.
    private mutating func changeOwner(_ effects: inout Effects) {
        inbox = InboxTracker()
        incarnation &+= 1
        carried = nil
        seen = SeenEntries()
        rooms = [:]
        watched = WatchedUsers()
        topics.forgetAll()
        ephemeral.clear()
        effects.append(.forgetEvents)
    }

    /// Whether the event's seq is valid in the present inbox.
    func isCurrent(_ event: Event) -> Bool {
        guard event.seq > 0, event.epoch == inbox.epoch else { return false }
        if event.incarnation == incarnation { return true }
        guard let carried else { return false }
        return event.incarnation >= carried.since && event.seq <= carried.upTo
    }

    func isRepeat(_ event: Event) -> Bool { event.isRepeat }

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
            outgoing.contains(message.clientID) || sending.values.contains(message.clientID)
        {
            // This device sent the message before the connection broke or the app ended. The receipt comes when the
            // message is sent again.
            entry = nil
        }
        let before = inbox.received
        inbox.arrived(entry, seq: event.seq, to: to, bytes: frameBytes, now: now, output: &outputs)
        if isExpired, before < to, inbox.received >= to { inbox.noteLoss(of: max(event.seq, before + 1)...to) }
        drain(&effects)
    }

    /// The longest room name, in bytes.
    private static var maxRoomBytes: Int { 64 }

    /// Tells the app, before it gets a push to a room, which earlier pushes to the room did not arrive.
    mutating func track(_ room: Hermes_V1_RoomEvent) {
        if case .kicked = room.event { topics.forget(room.room) }
        guard room.topicSeq > 0, room.room.utf8.count <= Self.maxRoomBytes,
            let missed = topics.arrived(room.topicSeq, epoch: room.topicEpoch, on: room.room)
        else { return }
        let count = missed.upperBound - missed.lowerBound &+ 1
        statistics.counter.missedPushes(count, date: WallClock.milliseconds())
        ephemeral.send(EphemeralEvent(.missedPushes(topic: "room/\(room.room)", numbers: missed)), bytes: 0)
    }

    /// Turns the tracker's outputs into effects.
    mutating func drain(_ effects: inout Effects) {
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
