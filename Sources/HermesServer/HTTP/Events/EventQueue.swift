// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// An event that waits for the reader of a stream.
enum StreamedEvent: Sendable {
    case publication(Publication)
    /// A publication whose payload is too large for an event.
    case tooLarge(TopicName, bytes: Int)
    case server(ServerEvent, at: Timestamp)
    /// The number of events that were dropped at this place in the stream.
    case dropped(Int)
}

/// The reason why a stream ends.
enum StreamEnd: String, Sendable {
    case keyRevoked = "key_revoked"
    case serverStopping = "server_stopping"
    /// The reader has gone.
    case gone

    /// Whether the reader still gets the events that wait.
    var deliversRest: Bool { self == .serverStopping }
}

/// The events that wait for the reader of one stream. The queue is bounded: an event for which there is no room is
/// dropped and counted, and the reader gets the count in the place of the missing events. Does no I/O.
struct EventQueue: Sendable {
    /// The next part of the stream.
    struct Batch: Sendable {
        var events: [(event: StreamedEvent, weight: Int)] = []
        var isHeartbeatDue = false
        var end: StreamEnd?
    }

    /// The size of an event in the queue without its payload, in bytes.
    static let eventWeight = 512

    let maxBytes: Int
    /// The size of the events that wait or are being written, in bytes.
    private(set) var bytes = 0
    private(set) var end: StreamEnd?
    private var events: [(event: StreamedEvent, weight: Int)] = []
    /// The number of events that were dropped since a count was last queued for the reader.
    private var dropped = 0
    private var isFull = false
    private var isHeartbeatDue = false

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// Whether there is something to write.
    var hasWork: Bool { !events.isEmpty || isHeartbeatDue || end != nil }

    /// Adds an event, if there is room.
    ///
    /// A full queue accepts nothing until half of it is written. So the reader gets a few large counts of dropped
    /// events, not many small ones.
    ///
    /// - Returns: whether it was added.
    mutating func add(weight: Int, _ event: () -> StreamedEvent) -> Bool {
        guard end == nil else { return false }
        if isFull, bytes > maxBytes / 2 {
            dropped += 1
            return false
        }
        guard bytes == 0 || bytes + weight <= maxBytes else {
            isFull = true
            dropped += 1
            return false
        }
        isFull = false
        tellDropped()
        events.append((event(), weight))
        bytes += weight
        return true
    }

    /// Counts an event that was dropped before it reached the queue.
    mutating func drop() { if end == nil { dropped += 1 } }

    mutating func heartbeatDue() { isHeartbeatDue = true }

    /// Ends the stream. If it has ended already, the first reason stays.
    mutating func end(_ reason: StreamEnd) {
        guard end == nil else { return }
        end = reason
        guard !reason.deliversRest else { return }
        bytes -= events.reduce(0) { $0 + $1.weight }
        events = []
        dropped = 0
    }

    /// Takes everything that waits. Returns nil if there is nothing to write; otherwise ``written(_:)`` must be called
    /// with the weight of the events.
    mutating func take() -> Batch? {
        guard hasWork else { return nil }
        tellDropped()
        defer {
            events = []
            isHeartbeatDue = false
        }
        return Batch(events: events, isHeartbeatDue: isHeartbeatDue, end: end)
    }

    /// Frees the room of events of this weight. The events were written, or they will never be written.
    mutating func written(_ weight: Int) { bytes -= weight }

    private mutating func tellDropped() {
        guard dropped > 0 else { return }
        events.append((.dropped(dropped), 0))
        dropped = 0
    }
}
