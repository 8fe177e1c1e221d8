// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Decides whether a wall clock can be trusted. A wrong clock would cause entries to be deleted too early. Does no I/O.
///
/// A wall clock that agrees with the monotonic clock is trusted. A wall clock that has jumped ahead is trusted after it
/// has agreed with the monotonic clock for ``confirmation``; until then, time continues as if the clock had not jumped.
/// A wall clock that has gone back is trusted at once, because a time that is too early deletes nothing. After such a
/// clock has agreed with the monotonic clock for ``confirmation``, an earlier jump ahead that was wrong is undone
/// (``ClockSetback``).
package struct SteadyClock: Sendable {
    /// The allowed drift between the two clocks from one check to the next.
    package static let tolerance = Duration.seconds(2)
    /// The time for which a clock that jumped ahead must agree with the monotonic clock. A wrong clock is usually
    /// corrected sooner, and ten minutes of delay do no harm.
    package static let confirmation = Duration.seconds(600)

    /// The wall clock minus the monotonic clock.
    package private(set) var offset: Duration
    private var candidate: (offset: Duration, since: Duration)?
    /// The time on the monotonic clock since which the present wall clock is trusted.
    private var since: Duration
    private var lookedAt: Duration
    /// A step back of the clock: its length, the earliest time at which it may have happened, and the time since which
    /// nothing has contradicted it.
    private var back: (length: Duration, from: Duration, since: Duration)?

    /// - Parameters:
    ///   - offset: the wall clock minus the monotonic clock at the start. This offset is trusted.
    ///   - uptime: the monotonic clock at the start.
    package init(offset: Duration, uptime: Duration = .zero) {
        self.offset = offset
        since = uptime
        lookedAt = uptime
    }

    /// Returns the offset that can be trusted when the clocks differ by `offset`.
    package func believed(_ offset: Duration) -> Duration {
        offset <= self.offset + Self.tolerance ? offset : self.offset
    }

    /// Checks the clocks. This is called about once a second.
    ///
    /// - Returns: a jump ahead that is confirmed; nil if there is none. The clock follows the jump only after
    ///   ``accept(uptime:)`` has been called.
    package mutating func look(offset: Duration, uptime: Duration) -> ClockJump? {
        defer { lookedAt = uptime }
        guard offset > self.offset + Self.tolerance else {
            if offset < self.offset - Self.tolerance {
                since = uptime
                // The clock may go back in several steps.
                let before = back ?? (.zero, lookedAt, uptime)
                back = (before.length + self.offset - offset, before.from, uptime)
            }
            self.offset = offset
            candidate = nil
            return nil
        }
        back?.since = uptime
        guard let known = candidate, abs(known.offset - offset) <= Self.tolerance else {
            candidate = (offset, uptime)
            return nil
        }
        // The candidate follows a drift of the clocks.
        candidate?.offset = offset
        guard uptime - known.since >= Self.confirmation else { return nil }
        return ClockJump(
            since: Self.time(self.offset + since).advanced(by: .zero - Self.tolerance),
            end: Self.time(self.offset + uptime),
            length: offset - self.offset
        )
    }

    /// Makes the clock follow the jump that was found last.
    package mutating func accept(uptime: Duration) {
        guard let candidate else { return }
        offset = candidate.offset
        since = uptime
        self.candidate = nil
        back = nil
    }

    /// Returns the confirmed step back; nil if there is none. Returns the same step until ``tookBack()`` is called.
    package func setback(uptime: Duration) -> ClockSetback? {
        guard let back, uptime - back.since >= Self.confirmation else { return nil }
        return ClockSetback(
            length: back.length,
            since: Self.time(offset + back.from).advanced(by: .zero - Self.tolerance),
            now: Self.time(offset + uptime)
        )
    }

    /// Forgets the step back after the store has handled it.
    package mutating func tookBack() { back = nil }

    private static func time(_ duration: Duration) -> Timestamp { Timestamp(rawValue: 0).advanced(by: duration) }

    private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
}

/// A source of time whose wall clock does not jump ahead (``SteadyClock``). Reading the time takes no lock.
///
/// State: a `Mutex` for the checks, and atomics with the result of the last check.
package final class SteadyTime: TimeSource {
    private let base: any TimeSource
    private let clock: Mutex<SteadyClock>
    /// The clock's offset, in milliseconds.
    private let offset: Atomic<Int64>
    /// The latest time, in milliseconds, at which the wall clock cannot have jumped ahead. Until this time, the
    /// monotonic clock need not be read. Each check of the clocks sets this time.
    private let horizon: Atomic<Int64>
    private let start: Duration
    /// The time of the wall clock at the start.
    private let startedAt: Timestamp

    /// Trusts the present clock of `base`.
    package init(_ base: any TimeSource) {
        self.base = base
        start = base.uptime()
        startedAt = base.now()
        let offset = Self.offset(startedAt, start)
        clock = Mutex(SteadyClock(offset: offset, uptime: start))
        self.offset = Atomic(Self.milliseconds(offset))
        horizon = Atomic(Self.horizon(offset, start))
    }

    package func now() -> Timestamp {
        let now = base.now()
        if now.rawValue <= horizon.load(ordering: .relaxed) { return now }
        let uptime = Self.milliseconds(base.uptime())
        let believed = offset.load(ordering: .relaxed)
        return now.rawValue - uptime <= believed + Self.milliseconds(SteadyClock.tolerance)
            ? now : Timestamp(rawValue: believed + uptime)
    }

    package func latest() -> Timestamp { max(base.now(), now()) }

    package func uptime() -> Duration { base.uptime() }

    /// Returns the time for reads. Until the clock is confirmed, only entries that were stored since the start can
    /// expire. If a device were told by mistake that an older entry has expired, it would acknowledge the entry. Until
    /// the clock is confirmed, the purge also keeps older entries.
    package func expiryTime() -> ExpiryTime {
        ExpiryTime(now: now(), storedSince: isConfirmed ? nil : startedAt)
    }

    /// Checks the clocks, and believes a confirmed jump at once.
    package func look() {
        if found() != nil { accept() }
    }

    /// Checks the clocks. This is called about once a second, by one caller at a time.
    ///
    /// - Parameter record: stores a confirmed jump before the jump is believed. If `record` fails, the next call tries
    ///   again.
    package func look(
        recording record: (ClockJump) async throws(HermesError) -> Void
    ) async throws(HermesError) {
        guard let jump = found() else { return }
        try await record(jump)
        accept()
    }

    /// Undoes the effects of a jump ahead that was wrong. This is called after each ``look(recording:)``, by one caller
    /// at a time.
    ///
    /// - Parameter takeBack: undoes the jump in the store. If `takeBack` fails, the next call tries again.
    package func takeBack(
        _ takeBack: (ClockSetback) async throws(HermesError) -> Void
    ) async throws(HermesError) {
        let uptime = base.uptime()
        guard let setback = clock.withLock({ $0.setback(uptime: uptime) }) else { return }
        try await takeBack(setback)
        clock.withLock { $0.tookBack() }
    }

    private func found() -> ClockJump? {
        let uptime = base.uptime()
        let offset = Self.offset(base.now(), uptime)
        return change(uptime) { $0.look(offset: offset, uptime: uptime) }
    }

    private func accept() {
        let uptime = base.uptime()
        change(uptime) { $0.accept(uptime: uptime) }
    }

    private func change<Result: Sendable>(_ uptime: Duration, _ body: (inout SteadyClock) -> Result) -> Result {
        let (result, believed) = clock.withLock { clock in
            let result = body(&clock)
            return (result, clock.offset)
        }
        offset.store(Self.milliseconds(believed), ordering: .relaxed)
        horizon.store(Self.horizon(believed, uptime), ordering: .relaxed)
        return result
    }

    /// Whether the clock was checked for ``SteadyClock/confirmation`` since the start. Entries that an earlier process
    /// stored expire only after that, because a machine may start with a wrong clock.
    package var isConfirmed: Bool { base.uptime() - start >= SteadyClock.confirmation }

    private static func horizon(_ offset: Duration, _ uptime: Duration) -> Int64 {
        milliseconds(offset) + milliseconds(uptime) + milliseconds(SteadyClock.tolerance)
    }

    private static func offset(_ now: Timestamp, _ uptime: Duration) -> Duration {
        .milliseconds(now.rawValue - milliseconds(uptime))
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let parts = duration.components
        return parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
    }
}
