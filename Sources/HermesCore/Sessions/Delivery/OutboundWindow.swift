// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The messages with QoS 1 and 2 that were sent to one client and are not acknowledged to the end.
///
/// Pure arithmetic: each message has a number, contiguous from 1 in a session, and its packet identifier follows from
/// the number, so that neither has to be looked up or stored. Contents are not kept here: a clean session never sends
/// again, a durable one reads its store. Owner: the session's event loop.
package struct OutboundWindow: Sendable {
    /// What is awaited of the client.
    private enum Phase: UInt8 {
        /// Nothing more.
        case done
        case acknowledgement
        case receipt
        /// PUBREC came; the release is being stored or was sent, PUBCOMP is awaited.
        case completion
    }

    /// What an acknowledgement meant.
    package enum Answer: Hashable, Sendable {
        /// No message with that identifier waits for this.
        case unknown
        /// The message with this number is delivered for good.
        case completed(UInt64)
        /// PUBREC: the message with this number is now to be released.
        case received(UInt64)
        /// PUBREC again for a message that is released already: say it again.
        case alreadyReceived(UInt64)
    }

    private var phases = Deque<Phase>()
    /// The number of the oldest message that is not done.
    package private(set) var base: UInt64
    /// Messages that count towards the client's receive maximum.
    package private(set) var inflight = 0
    /// The most of them: the client's receive maximum or our own limit, whichever is less.
    package let limit: Int
    /// How many messages may lie between the oldest that is not done and the newest, so that identifiers do not meet: they
    /// are 1 … ``span``.
    package let span: Int

    /// The largest ``span``. Identifiers above it are left to others.
    package static let maxSpan = 65_023

    /// - Parameters:
    ///   - first: the number of the next message, from 1.
    ///   - limit: the most that may be unacknowledged, 1 … `span`.
    ///   - span: the highest identifier, 1 … ``maxSpan``.
    package init(first: UInt64 = 1, limit: Int, span: Int = maxSpan) {
        base = max(1, first)
        self.span = min(max(1, span), Self.maxSpan)
        self.limit = min(max(1, limit), self.span)
    }

    /// The number of the next message.
    package var next: UInt64 { base &+ UInt64(phases.count) }

    /// The highest number that the next message may have, so that identifiers do not meet.
    package var mostNext: UInt64 { phases.isEmpty ? .max : base &+ UInt64(span) &- 1 }

    /// Whether one more may be sent now.
    package var hasRoom: Bool { inflight < limit && phases.count < span }

    /// Whether so many more may be sent now.
    package func hasRoom(for count: Int) -> Bool {
        inflight + count <= limit && phases.count + count <= Self.maxSpan
    }

    /// Whether nothing is awaited.
    package var isEmpty: Bool { phases.isEmpty }

    /// The packet identifier of a message: 1 … ``span``.
    package func packetID(of number: UInt64) -> UInt16 {
        UInt16(truncatingIfNeeded: (number &- 1) % UInt64(span)) &+ 1
    }

    /// The packet identifier that the next message will have.
    package var nextPacketID: UInt16 { packetID(of: next) }

    /// Notes that the next message is sent now. Nothing but its acknowledgement frees the place that it takes: to be
    /// called once it is certain that the message goes out.
    ///
    /// - Returns: its packet identifier.
    package mutating func send(exactlyOnce: Bool) -> UInt16 {
        let id = packetID(of: next)
        phases.append(exactlyOnce ? .receipt : .acknowledgement)
        inflight += 1
        return id
    }

    /// Notes that the next message is one whose release was sent before: PUBCOMP is awaited.
    package mutating func resumeReleased() -> UInt16 {
        let id = packetID(of: next)
        phases.append(.completion)
        inflight += 1
        return id
    }

    /// Leaves numbers out up to (not including) `number`, for messages that are not sent any more.
    package mutating func skip(to number: UInt64) {
        guard number > next else { return }
        if phases.isEmpty {
            base = number
        } else {
            // Not beyond ``mostNext``, which callers look at.
            for _ in 0..<min(number - next, UInt64(span)) { phases.append(.done) }
        }
    }

    /// PUBACK came.
    package mutating func acknowledged(_ packetID: UInt16) -> Answer {
        guard let offset = offset(of: packetID), phases[offset] == .acknowledgement else { return .unknown }
        return .completed(complete(offset))
    }

    /// PUBREC came.
    ///
    /// - Parameter isRefused: the client does not take the message: it is done, and not released.
    package mutating func received(_ packetID: UInt16, isRefused: Bool = false) -> Answer {
        guard let offset = offset(of: packetID) else { return .unknown }
        switch phases[offset] {
        case .receipt:
            if isRefused { return .completed(complete(offset)) }
            phases[offset] = .completion
            return .received(base &+ UInt64(offset))
        case .completion:
            // It has said yes before; no PUBREL, and so no PUBCOMP, follows this one.
            if isRefused { return .completed(complete(offset)) }
            return .alreadyReceived(base &+ UInt64(offset))
        case .done, .acknowledgement:
            return .unknown
        }
    }

    /// PUBCOMP came.
    package mutating func finished(_ packetID: UInt16) -> Answer {
        guard let offset = offset(of: packetID), phases[offset] == .completion else { return .unknown }
        return .completed(complete(offset))
    }

    private func offset(of packetID: UInt16) -> Int? {
        guard packetID != 0 else { return nil }
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
