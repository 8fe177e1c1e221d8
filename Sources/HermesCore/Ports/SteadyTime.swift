// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Which wall clock may be believed, where believing a wrong one destroys what is not expired yet. Pure.
///
/// A wall clock that agrees with the monotonic one is right, as far as anybody can tell. One that has jumped ahead is
/// believed once it has agreed with the monotonic clock for ``confirmation``; until then time goes on from where it was.
/// One that has gone back is believed at once: too early destroys nothing.
package struct SteadyClock: Sendable {
    /// By how much the two clocks may drift apart from one look to the next.
    package static let tolerance = Duration.seconds(2)
    /// How long a clock that has jumped ahead must agree with the monotonic one: a wrong one is set right before, and
    /// nobody minds what goes ten minutes late.
    package static let confirmation = Duration.seconds(600)

    /// The wall clock less the monotonic one.
    package private(set) var offset: Duration
    private var candidate: (offset: Duration, since: Duration)?

    /// - Parameter offset: of the wall clock at the start, which is believed.
    package init(offset: Duration) { self.offset = offset }

    /// What may be believed if the clocks stand like this.
    package func believed(_ offset: Duration) -> Duration {
        offset <= self.offset + Self.tolerance ? offset : self.offset
    }

    /// Looks at the clocks; to be called about once a second.
    package mutating func look(offset: Duration, uptime: Duration) {
        guard offset > self.offset + Self.tolerance else {
            self.offset = offset
            candidate = nil
            return
        }
        guard let known = candidate, abs(known.offset - offset) <= Self.tolerance else {
            candidate = (offset, uptime)
            return
        }
        guard uptime - known.since >= Self.confirmation else {
            // Follows a drift.
            candidate?.offset = offset
            return
        }
        self.offset = offset
        candidate = nil
    }

    private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
}

/// A source of time whose wall clock does not jump ahead; see ``SteadyClock``. Costs no lock.
///
/// State: a `Mutex` for the looks, and what came of the last one, for all who ask meanwhile.
package final class SteadyTime: TimeSource {
    private let base: any TimeSource
    private let clock: Mutex<SteadyClock>
    /// Of the clock, in milliseconds.
    private let offset: Atomic<Int64>
    private let start: Duration

    /// Believes the clock of `base` as it stands now.
    package init(_ base: any TimeSource) {
        self.base = base
        start = base.uptime()
        let offset = Self.offset(base.now(), start)
        clock = Mutex(SteadyClock(offset: offset))
        self.offset = Atomic(Self.milliseconds(offset))
    }

    package func now() -> Timestamp {
        let now = base.now()
        let uptime = Self.milliseconds(base.uptime())
        let believed = offset.load(ordering: .relaxed)
        return now.rawValue - uptime <= believed + Self.milliseconds(SteadyClock.tolerance)
            ? now : Timestamp(rawValue: believed + uptime)
    }

    package func uptime() -> Duration { base.uptime() }

    /// Looks at the clocks; to be called about once a second.
    package func look() {
        let uptime = base.uptime()
        let offset = Self.offset(base.now(), uptime)
        let believed = clock.withLock { clock in
            clock.look(offset: offset, uptime: uptime)
            return clock.offset
        }
        self.offset.store(Self.milliseconds(believed), ordering: .relaxed)
    }

    /// Whether the clock has been looked at for long enough to believe it in what was stored by an earlier process: a
    /// machine may start with a wrong one.
    package var isConfirmed: Bool { base.uptime() - start >= SteadyClock.confirmation }

    private static func offset(_ now: Timestamp, _ uptime: Duration) -> Duration {
        .milliseconds(now.rawValue - milliseconds(uptime))
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let parts = duration.components
        return parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
    }
}
