// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import NIOCore

/// Frames that wait for a peer that does not read, in order, up to a number of bytes. Where there are too many the
/// oldest of the least important go first; ``Publication/DropClass/control`` never does.
package struct OutboundQueue {
    /// What became of a frame.
    package enum Outcome: Equatable {
        /// It waits.
        case queued
        /// It waits in the place of older frames: how many of each class were dropped.
        case queuedDropping(Dropped)
        /// Nothing less important is there to make room, and it was dropped itself.
        case refused
        /// The same for a frame that must not be dropped: the connection has to end.
        case overflow
    }

    /// Numbers of dropped frames.
    package struct Dropped: Equatable {
        package var text = 0
        package var presence = 0
        package var gift = 0

        package init() {}

        mutating func count(_ victim: (kind: Publication.DropClass, frames: Int)) {
            switch victim.kind {
            case .text: text += victim.frames
            case .presence: presence += victim.frames
            case .gift: gift += victim.frames
            case .control: break
            }
        }
    }

    private struct Waiting {
        let number: UInt64
        let bytes: ByteBuffer
        /// How many frames the bytes are.
        let frameCount: Int
    }

    /// One for each class, the least important first; none at all while nothing waits.
    private var lanes: [Deque<Waiting>] = []
    private var nextNumber: UInt64 = 0
    /// The frames' bytes in all.
    package private(set) var bytes = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// Appends a frame, and makes room for it by dropping what is older and not more important.
    ///
    /// - Parameters:
    ///   - frame: the frame, or several side by side that wait, and are dropped, together.
    ///   - frameCount: how many they are.
    ///   - limit: the most that may wait, in bytes; a frame that must not be dropped may exceed it as long as less than
    ///     half of it is taken.
    package mutating func append(
        _ frame: ByteBuffer,
        _ kind: Publication.DropClass,
        frameCount: Int = 1,
        limit: Int
    ) -> Outcome {
        if lanes.isEmpty { lanes = Array(repeating: Deque(), count: Int(Publication.DropClass.control.rawValue) + 1) }
        var dropped = Dropped()
        while bytes + frame.readableBytes > limit || count >= Self.maxCount(limit) {
            guard let victim = dropOldest(notAbove: kind) else {
                guard kind == .control else { return .refused }
                // One frame may be longer than all that is left, or than the whole limit.
                if bytes <= limit / 2, count < Self.maxCount(limit) { break }
                return .overflow
            }
            dropped.count(victim)
        }
        lanes[Int(kind.rawValue)].append(Waiting(number: nextNumber, bytes: frame, frameCount: frameCount))
        nextNumber += 1
        bytes += frame.readableBytes
        count += 1
        return dropped == Dropped() ? .queued : .queuedDropping(dropped)
    }

    private mutating func dropOldest(
        notAbove kind: Publication.DropClass
    ) -> (kind: Publication.DropClass, frames: Int)? {
        for victim in [Publication.DropClass.text, .presence, .gift] where victim <= kind {
            guard let waiting = lanes[Int(victim.rawValue)].popFirst() else { continue }
            bytes -= waiting.bytes.readableBytes
            count -= 1
            return (victim, waiting.frameCount)
        }
        return nil
    }

    /// A frame costs memory beside its bytes, and most of all where it has few.
    private static func maxCount(_ limit: Int) -> Int { max(16, limit / 64) }

    /// Takes the oldest frame, or those that were appended with it.
    package mutating func popFirst() -> (bytes: ByteBuffer, frameCount: Int)? {
        var oldest: (lane: Int, number: UInt64)?
        for lane in lanes.indices {
            guard let number = lanes[lane].first?.number else { continue }
            if let found = oldest, found.number < number { continue }
            oldest = (lane, number)
        }
        guard let oldest, let waiting = lanes[oldest.lane].popFirst() else { return nil }
        bytes -= waiting.bytes.readableBytes
        count -= 1
        if count == 0 { removeAll() }
        return (waiting.bytes, waiting.frameCount)
    }

    /// Forgets all that may be left out.
    package mutating func dropWhatMayGo() -> Dropped {
        var dropped = Dropped()
        guard !isEmpty else { return dropped }
        while let victim = dropOldest(notAbove: .control) { dropped.count(victim) }
        if count == 0 { removeAll() }
        return dropped
    }

    /// Forgets everything.
    package mutating func removeAll() { self = OutboundQueue() }
}
