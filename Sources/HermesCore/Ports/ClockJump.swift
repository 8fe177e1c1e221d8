// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A forward jump of the wall clock that turned out to be right (``SteadyClock``). Before the jump, the clock was
/// behind the real time. So rows with time stamps from before the jump are younger than their time stamps say. The
/// difference is the length of the jump.
///
/// A store remembers the jumps. It corrects the times of each such row once, when it uses these times. The range
/// ``times`` is at most as long as the jump, so a corrected time lies after the range. For this reason, a row needs no
/// mark that it was corrected. Rows with earlier times are not corrected, because they are already older than the
/// length of the jump.
package struct ClockJump: Sendable, Hashable {
    /// The range of stored times that the jump concerns.
    package let times: Range<Timestamp>
    package let length: Duration

    /// - Parameters:
    ///   - since: the time since which the wrong clock was trusted, as read on this clock.
    ///   - end: the time until which the wrong clock was trusted, as read on this clock.
    ///   - length: how far the wrong clock was behind; greater than zero.
    package init(since: Timestamp, end: Timestamp, length: Duration) {
        self.length = length
        // Operations that are under way at the end are still stored with times of the wrong clock. Times of the
        // corrected clock are later by the whole length of the jump.
        let slack = min(length / 2, .seconds(60))
        let until = end.advanced(by: slack)
        let first = max(since, until.advanced(by: .zero - length))
        times = first..<max(first, until)
    }

    /// Creates a jump that was stored.
    package init(times: Range<Timestamp>, length: Duration) {
        self.times = times
        self.length = length
    }
}

/// The jumps that a store remembers.
package struct ClockJumps: Sendable, Hashable {
    /// The largest number of jumps that are remembered. Older jumps are forgotten.
    package static let limit = 64

    /// The jumps, in the order in which they were found.
    package private(set) var all: [ClockJump] = []

    package init(_ all: [ClockJump] = []) { self.all = all.suffix(Self.limit) }

    package mutating func add(_ jump: ClockJump) { self = ClockJumps(all + [jump]) }

    package mutating func remove(_ jump: ClockJump) { all.removeAll { $0 == jump } }

    /// Returns how much younger a row is than its stored time says. The result is zero for most times.
    package func correction(of stored: Timestamp) -> Duration {
        guard !all.isEmpty else { return .zero }
        var sum = Duration.zero
        for jump in all where jump.times.contains(stored.advanced(by: sum)) { sum += jump.length }
        return sum
    }

    /// Corrects a time that was counted from a stored time, such as an expiry.
    package func corrected(_ time: Timestamp, storedAt stored: Timestamp) -> Timestamp {
        all.isEmpty ? time : time.advanced(by: correction(of: stored))
    }
}

/// A step back of the wall clock that turned out to be right (``SteadyClock``). If the step is about as long as an
/// earlier jump ahead that was believed, this jump was wrong. Then rows that were stored since the jump are older than
/// their times say. The difference is the length of the jump. The same is true of rows whose times were corrected
/// because of the jump.
package struct ClockSetback: Sendable, Hashable {
    /// How far the clock went back.
    package let length: Duration
    /// The range of the time stamps of rows that were stored with correct time stamps. The range begins at the earliest
    /// possible moment of the step back. It ends a little after the present, because of operations that are under way.
    package let own: ClosedRange<Timestamp>

    /// - Parameters:
    ///   - since: the earliest possible moment of the step back, in correct time.
    ///   - now: the present moment, in correct time.
    package init(length: Duration, since: Timestamp, now: Timestamp) {
        self.length = length
        own = min(since, now)...now.advanced(by: .seconds(10))
    }

    /// Returns the jump that this step back undoes: the last jump of about the same length. Returns nil if there is no
    /// such jump.
    package func undoes(_ jumps: ClockJumps) -> ClockJump? {
        jumps.all.last { jump in
            // Clocks drift, and corrections of clocks are not exact.
            let slack = max(SteadyClock.tolerance, min(.seconds(60), jump.length / 20))
            return jump.length <= length + slack && length <= jump.length + slack
        }
    }

    /// Whether a stored time is too late by the jump's length.
    package func concerns(_ stored: Timestamp, of jump: ClockJump) -> Bool {
        stored >= jump.times.lowerBound.advanced(by: jump.length) && !own.contains(stored)
    }
}
