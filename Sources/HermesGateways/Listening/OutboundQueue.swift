// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import NIOCore

/// A queue of frames for a peer that does not read. The frames keep their order, and their total size is limited. When
/// the queue is full, the oldest frames of the least important class are dropped first. Frames of the class
/// ``Publication/DropClass/control`` are never dropped.
package struct OutboundQueue {
    /// The outcome of appending a frame.
    package enum Outcome: Equatable {
        /// Queued.
        case queued
        /// Queued in place of older frames, with the number of dropped frames of each class.
        case queuedDropping(Dropped)
        /// Dropped, because there was not enough space, even without the waiting frames of the same class and of less
        /// important classes.
        case refused
        /// Not queued although the frame must not be dropped, so the connection must end.
        case overflow
    }

    /// The numbers of dropped frames.
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
        /// The bytes that follow ``bytes`` and are written without a copy; nil if there are none.
        let body: ByteBuffer?
        /// The number of frames in the bytes.
        let frameCount: Int

        var size: Int { bytes.readableBytes + (body?.readableBytes ?? 0) }
    }

    /// The waiting frames of each class, the least important class first; empty while nothing waits.
    private var lanes: [Deque<Waiting>] = []
    private var nextNumber: UInt64 = 0
    /// The size of all frames, in bytes.
    package private(set) var bytes = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// Appends a frame. If necessary, this drops older frames that are not more important.
    ///
    /// - Parameters:
    ///   - frame: the frame, or several adjacent frames that wait together and are dropped together.
    ///   - body: bytes that follow the frame without a copy.
    ///   - frameCount: the number of frames.
    ///   - limit: the largest number of waiting bytes. A frame that must not be dropped may exceed the limit if at most
    ///     half of the limit is in use.
    package mutating func append(
        _ frame: ByteBuffer,
        sharing body: ByteBuffer? = nil,
        _ kind: Publication.DropClass,
        frameCount: Int = 1,
        limit: Int
    ) -> Outcome {
        let waiting = Waiting(number: nextNumber, bytes: frame, body: body, frameCount: frameCount)
        if lanes.isEmpty { lanes = Array(repeating: Deque(), count: Int(Publication.DropClass.control.rawValue) + 1) }
        var dropped = Dropped()
        while bytes + waiting.size > limit || count >= Self.maxCount(limit) {
            guard let victim = dropOldest(notAbove: kind) else {
                guard kind == .control else { return .refused }
                // One frame may be longer than the remaining bytes, or than the whole limit.
                if bytes <= limit / 2, count < Self.maxCount(limit) { break }
                return .overflow
            }
            dropped.count(victim)
        }
        lanes[Int(kind.rawValue)].append(waiting)
        nextNumber += 1
        bytes += waiting.size
        count += 1
        return dropped == Dropped() ? .queued : .queuedDropping(dropped)
    }

    private mutating func dropOldest(
        notAbove kind: Publication.DropClass
    ) -> (kind: Publication.DropClass, frames: Int)? {
        for victim in [Publication.DropClass.text, .presence, .gift] where victim <= kind {
            guard let waiting = lanes[Int(victim.rawValue)].popFirst() else { continue }
            bytes -= waiting.size
            count -= 1
            return (victim, waiting.frameCount)
        }
        return nil
    }

    /// Returns the largest number of frames that may wait. Their number is limited because each frame costs memory in
    /// addition to its bytes.
    private static func maxCount(_ limit: Int) -> Int { max(16, limit / 64) }

    /// Removes and returns the oldest frame, together with the frames that were appended with it.
    package mutating func popFirst() -> (bytes: ByteBuffer, body: ByteBuffer?, frameCount: Int)? {
        var oldest: (lane: Int, number: UInt64)?
        for lane in lanes.indices {
            guard let number = lanes[lane].first?.number else { continue }
            if let found = oldest, found.number < number { continue }
            oldest = (lane, number)
        }
        guard let oldest, let waiting = lanes[oldest.lane].popFirst() else { return nil }
        bytes -= waiting.size
        count -= 1
        if count == 0 { removeAll() }
        return (waiting.bytes, waiting.body, waiting.frameCount)
    }

    /// Drops all frames that may be dropped.
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
