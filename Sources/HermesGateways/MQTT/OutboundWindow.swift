// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The QoS 1 and 2 messages that were sent to one client but are not yet fully acknowledged.
///
/// This is pure arithmetic. Each message has a number; the numbers of a session are contiguous from 1. The packet
/// identifier and the number of a message can be calculated from each other, so neither is looked up or stored. The
/// contents of messages are not kept here: a session that ends with its connection never sends a message again, and a
/// durable session reads the message from the store. Owner: the connection's event loop.
struct OutboundWindow: Sendable {
    /// The acknowledgement that is awaited.
    private enum Phase: UInt8 {
        /// Nothing is awaited: the message is finished.
        case done
        /// PUBACK is awaited.
        case acknowledgement
        /// PUBREC is awaited.
        case receipt
        /// PUBREC arrived and is being stored. PUBREL is sent after that.
        case release
        /// PUBREL was sent, and PUBCOMP is awaited.
        case completion
    }

    /// The meaning of an acknowledgement.
    enum Answer: Hashable, Sendable {
        /// No message with that identifier waits for this acknowledgement.
        case unknown
        /// The message with this number is delivered.
        case completed(UInt64)
        /// The message with this number was received (PUBREC): send PUBREL for it.
        case received(UInt64)
        /// PUBREC arrived again, and PUBREL was already sent: send PUBREL again.
        case alreadyReceived
        /// PUBREC arrived again while the first PUBREC is being stored: send nothing, because PUBREL follows later.
        case releaseAwaited
    }

    private var phases = Deque<Phase>()
    /// The number of the oldest unfinished message.
    private(set) var base: UInt64
    /// The number of messages that count towards the client's receive maximum.
    private(set) var inflight = 0
    /// The smaller of the client's receive maximum and the server's limit, minus the slots that are lent.
    private(set) var limit: Int
    /// The largest count of message numbers from the oldest unfinished message to the newest message. The bound keeps
    /// the packet identifiers distinct; they are 1 … ``span``.
    let span: Int

    /// The largest ``span``. Identifiers above it have other uses.
    static let maxSpan = 65_023

    /// - Parameters:
    ///   - first: the number of the next message; numbers begin at 1.
    ///   - limit: the largest number of messages that may be unacknowledged, 1 … `span`.
    ///   - span: the highest identifier, 1 … ``maxSpan``.
    init(first: UInt64 = 1, limit: Int, span: Int = maxSpan) {
        base = max(1, first)
        self.span = min(max(1, span), Self.maxSpan)
        self.limit = min(max(1, limit), self.span)
    }

    /// The number of the next message.
    var next: UInt64 { base &+ UInt64(phases.count) }

    /// The highest number that the next message may have, so that identifiers stay distinct.
    var mostNext: UInt64 { phases.isEmpty ? .max : base &+ UInt64(span) &- 1 }

    /// Whether another message may be sent now.
    var hasRoom: Bool { inflight < limit && phases.count < span }

    /// Whether this number of further messages may be sent now.
    func hasRoom(for count: Int) -> Bool {
        inflight + count <= limit && phases.count + count <= span
    }

    /// Lends a slot to another window of the same client, because the client's receive maximum applies to both windows
    /// together. This window must have room.
    mutating func lend() { limit -= 1 }

    /// Takes back a slot that was lent.
    mutating func takeBack() { limit += 1 }

    /// Whether no acknowledgement is awaited.
    var isEmpty: Bool { phases.isEmpty }

    /// Returns the packet identifier of a message, 1 … ``span``.
    func packetID(of number: UInt64) -> UInt16 {
        UInt16(truncatingIfNeeded: (number &- 1) % UInt64(span)) &+ 1
    }

    /// The packet identifier that the next message will have.
    var nextPacketID: UInt16 { packetID(of: next) }

    /// Records that the next message is sent. Only an acknowledgement frees the slot of the message, so call this only
    /// if the message is certain to be sent.
    ///
    /// - Returns: the message's packet identifier.
    mutating func send(exactlyOnce: Bool) -> UInt16 {
        let id = packetID(of: next)
        phases.append(exactlyOnce ? .receipt : .acknowledgement)
        inflight += 1
        return id
    }

    /// Records the next message as a message that was released over an earlier connection, so that only PUBCOMP is
    /// awaited.
    mutating func resumeReleased() -> UInt16 {
        let id = packetID(of: next)
        phases.append(.completion)
        inflight += 1
        return id
    }

    /// Skips numbers up to (not including) `number`, for messages that are no longer sent.
    mutating func skip(to number: UInt64) {
        guard number > next else { return }
        if phases.isEmpty {
            base = number
        } else {
            // Callers ensure that `number` is not above ``mostNext``.
            for _ in 0..<min(number - next, UInt64(span)) { phases.append(.done) }
        }
    }

    /// Handles a PUBACK.
    mutating func acknowledged(_ packetID: UInt16) -> Answer {
        guard let offset = offset(of: packetID), phases[offset] == .acknowledgement else { return .unknown }
        return .completed(complete(offset))
    }

    /// Handles a PUBREC.
    ///
    /// - Parameters:
    ///   - isRefused: whether the client refuses the message. If so, the message is finished, and no PUBREL follows.
    ///   - isStored: whether the PUBREC must be stored before PUBREL is sent. If so, a call to ``released(_:)`` must
    ///     follow.
    mutating func received(_ packetID: UInt16, isRefused: Bool = false, isStored: Bool = false) -> Answer {
        guard let offset = offset(of: packetID) else { return .unknown }
        switch phases[offset] {
        case .receipt:
            if isRefused { return .completed(complete(offset)) }
            phases[offset] = isStored ? .release : .completion
            return .received(base &+ UInt64(offset))
        case .release, .completion:
            // The client sent a PUBREC with success earlier, and now sends a PUBREC with a failure. So neither a
            // PUBREL nor a PUBCOMP follows.
            if isRefused { return .completed(complete(offset)) }
            return phases[offset] == .release ? .releaseAwaited : .alreadyReceived
        case .done, .acknowledgement:
            return .unknown
        }
    }

    /// Notes that the PUBREC of a message is stored, so that PUBREL is sent and PUBCOMP is awaited.
    mutating func released(_ packetID: UInt16) {
        guard let offset = offset(of: packetID), phases[offset] == .release else { return }
        phases[offset] = .completion
    }

    /// Handles a PUBCOMP.
    mutating func finished(_ packetID: UInt16) -> Answer {
        guard let offset = offset(of: packetID) else { return .unknown }
        switch phases[offset] {
        case .release, .completion: return .completed(complete(offset))
        case .done, .acknowledgement, .receipt: return .unknown
        }
    }

    private func offset(of packetID: UInt16) -> Int? {
        // An identifier above the span would be mistaken for the identifier of another message.
        guard packetID != 0, Int(packetID) <= span else { return nil }
        let first = (base &- 1) % UInt64(span)
        let distance = (UInt64(packetID) - 1 + UInt64(span) - first) % UInt64(span)
        return distance < UInt64(phases.count) ? Int(distance) : nil
    }

    private mutating func complete(_ offset: Int) -> UInt64 {
        let number = base &+ UInt64(offset)
        phases[offset] = .done
        inflight -= 1
        while let first = phases.first, first == .done {
            phases.removeFirst()
            base &+= 1
        }
        return number
    }
}
