// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A jump ahead of the wall clock that turned out to be right (``SteadyClock``): before it, the clock was behind. So
/// rows with time stamps from before the jump are younger than they look, by the length of the jump.
///
/// A store keeps the jumps and corrects the times of such rows when they matter, each row once. A corrected time lies
/// after the jump's ``times``, because these span no more than the jump; so a row needs no mark that it was corrected.
/// Earlier rows of the same clock, which are older than the jump is long, are not corrected.
package struct ClockJump: Sendable, Hashable {
    /// The stored times that it concerns.
    package let times: Range<Timestamp>
    package let length: Duration

    /// - Parameters:
    ///   - since: when the clock that was behind began to count, by itself.
    ///   - end: when it ended, by itself.
    ///   - length: how far it was behind, above zero.
    package init(since: Timestamp, end: Timestamp, length: Duration) {
        self.length = length
        // What was under way at the end is still stored with its times; the next clock's are later by the whole jump.
        let slack = min(length / 2, .seconds(60))
        let until = end.advanced(by: slack)
        let first = max(since, until.advanced(by: .zero - length))
        times = first..<max(first, until)
    }

    /// A stored one.
    package init(times: Range<Timestamp>, length: Duration) {
        self.times = times
        self.length = length
    }
}

/// The jumps that a store remembers.
package struct ClockJumps: Sendable, Hashable {
    /// The oldest ones beyond this number are forgotten.
    package static let limit = 64

    /// In the order in which they were found.
    package private(set) var all: [ClockJump] = []

    package init(_ all: [ClockJump] = []) { self.all = all.suffix(Self.limit) }

    package mutating func add(_ jump: ClockJump) { self = ClockJumps(all + [jump]) }

    package mutating func remove(_ jump: ClockJump) { all.removeAll { $0 == jump } }

    /// How much younger something is than a stored time tells; zero for most.
    package func correction(of stored: Timestamp) -> Duration {
        guard !all.isEmpty else { return .zero }
        var sum = Duration.zero
        for jump in all where jump.times.contains(stored.advanced(by: sum)) { sum += jump.length }
        return sum
    }

    /// A time that counts from a stored one, such as an expiry.
    package func corrected(_ time: Timestamp, storedAt stored: Timestamp) -> Timestamp {
        all.isEmpty ? time : time.advanced(by: correction(of: stored))
    }
}

/// A step back of the wall clock that was found right (``SteadyClock``). If it is as long as a jump ahead that was
/// believed, the jump was wrong. What was stored since the jump is then older than its times say, by the length of the
/// jump, and so is what was corrected because of the jump.
package struct ClockSetback: Sendable, Hashable {
    /// How far the clock went back.
    package let length: Duration
    /// The times of what was stored by the clock that is right: from the earliest moment at which the clock may have
    /// gone back until now, including what is under way.
    package let own: ClosedRange<Timestamp>

    /// - Parameters:
    ///   - since: when the clock went back, at the earliest, by the clock that is right.
    ///   - now: by the same clock.
    package init(length: Duration, since: Timestamp, now: Timestamp) {
        self.length = length
        own = min(since, now)...now.advanced(by: .seconds(10))
    }

    /// The last jump that was as long; nil: there was none, and nothing is taken back.
    package func undoes(_ jumps: ClockJumps) -> ClockJump? {
        jumps.all.last { jump in
            // Clocks drift, and so does what corrects them.
            let slack = max(SteadyClock.tolerance, min(.seconds(60), jump.length / 20))
            return jump.length <= length + slack && length <= jump.length + slack
        }
    }

    /// Whether a stored time is too late by the jump's length.
    package func concerns(_ stored: Timestamp, of jump: ClockJump) -> Bool {
        stored >= jump.times.lowerBound.advanced(by: jump.length) && !own.contains(stored)
    }
}
