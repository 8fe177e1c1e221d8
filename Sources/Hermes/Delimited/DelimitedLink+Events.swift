// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Events on their way to the app.
extension DelimitedLink {
    struct Event: Sendable {
        /// The epoch that the seq belongs to.
        var epoch: UInt64
        /// The entry's seq; 0 if the event is not an inbox entry, but says that the inbox was reset.
        var seq: UInt64
        /// The number of the inbox that the seq belongs to. The link increases it when the account changes, and when
        /// the server begins a new inbox or has lost entries.
        var incarnation: UInt64 = 0
        var event: InboxEvent
        /// The entry as it arrived; nil if the link does not keep entries, or if the event did not arrive as an entry.
        var source: Hermes_V1_Event?
        /// Whether the app has seen this entry before, under another seq.
        var isRepeat = false
        /// The length of the frame that carried the event, in bytes.
        var bytes = 0

        /// Whether the two events are the same. No two events of an inbox have the same seq.
        func isSame(as other: Self) -> Bool { incarnation == other.incarnation && seq == other.seq }
    }

    /// An entry of the inbox.
    struct Entry: Sendable {
        var event: InboxEvent
        /// The time of the commit, in milliseconds since 1970.
        var serverTime: Int64
        var source: Hermes_V1_Event?
        var bytes: Int
    }

    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {
        // Even if the event is from an earlier inbox, the tracker may now have room for the entries that it dropped.
        inbox.taken(seq: lastSeq(takenWith: event), now: now, output: &outputs)
        drain(&effects)
    }

    mutating func skipped(_ event: Event, now: NIODeadline, effects: inout Effects) {
        inbox.skipped(seq: isCurrent(event) ? event.seq : 0, now: now, output: &outputs)
        drain(&effects)
    }

    func bytes(of event: Event) -> Int { event.bytes }

    mutating func backlogChanged(_ count: Int, bytes: Int) {
        if bytes > Backlog.maxBytes || count > Backlog.maxEvents { inbox.isFull = true }
        if bytes < Backlog.maxBytes / 4, count < Backlog.maxEvents / 4 { inbox.isFull = false }
    }

    /// Whether the event's seq is valid in the present inbox. An event `inboxReset` is current if it is the latest
    /// reset.
    func isCurrent(_ event: Event) -> Bool {
        guard event.epoch == inbox.epoch else { return false }
        if event.incarnation == incarnation { return true }
        guard event.seq > 0, let carried else { return false }
        return event.incarnation >= carried.since && event.seq <= carried.upTo
    }

    /// Returns the seq up to which the app has taken the present inbox when it has taken the event; 0 if the event says
    /// nothing about this inbox. If the server has lost the event's own entry, the server still has the entries up to
    /// `carried.upTo`.
    private func lastSeq(takenWith event: Event) -> UInt64 {
        guard event.epoch == inbox.epoch else { return 0 }
        if event.incarnation == incarnation { return event.seq }
        guard let carried, event.incarnation >= carried.since else { return 0 }
        return min(event.seq, carried.upTo)
    }

    func isRepeat(_ event: Event) -> Bool { event.isRepeat }

    /// The longest room name, in bytes.
    private static var maxRoomBytes: Int { 64 }

    /// Reports lost pushes to a room before the app gets the next push to that room. Forgets a room that the client
    /// was kicked out of, so that later connections do not enter it again.
    mutating func track(_ room: Hermes_V1_RoomEvent) {
        if case .kicked = room.event {
            // An unanswered request to enter the room is kept, because the server accepts it only after the kick.
            rooms[room.room] = nil
            topics.forget(room.room)
        }
        guard room.topicSeq > 0, room.room.utf8.count <= Self.maxRoomBytes,
            let missed = topics.arrived(room.topicSeq, epoch: room.topicEpoch, on: room.room)
        else { return }
        let count = missed.upperBound - missed.lowerBound &+ 1
        statistics.counter.missedPushes(count, date: WallClock.milliseconds())
        ephemeral.send(EphemeralEvent(.missedPushes(topic: "room/\(room.room)", numbers: missed)), bytes: 0)
    }
}
