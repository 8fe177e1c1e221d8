// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How long to wait before trying again: twice as long each time, within bounds, spread at random so that many who failed
/// together do not come back together.
package struct Backoff: Sendable, Hashable {
    package var base: Duration
    package var limit: Duration

    package init(base: Duration, limit: Duration) {
        self.base = base
        self.limit = limit
    }

    /// The wait after so many failures in a row (from 1): between half of the step and the whole.
    ///
    /// - Parameters:
    ///   - asked: what the other side asked for; it is waited for at least so long, up to `limit` and a little more.
    ///   - random: 0 … 1.
    package func delay(failures: Int, asked: Duration? = nil, random: Double = .random(in: 0...1)) -> Duration {
        let step = min(base * (1 << min(max(0, failures - 1), 20)), limit)
        let spread = step / 2 + (step / 2) * random
        guard let asked else { return spread }
        return max(min(asked, limit), .zero) + spread
    }
}

/// Whether a push service is left alone for a while. Pure; owner: ``PushHandOff``.
package struct ServiceHealth: Sendable {
    private struct Pause: Sendable {
        var failures = 0
        var until = Duration.zero
    }

    private let backoff: Backoff
    private var pauses: [PushToken.Service: Pause] = [:]

    package init(backoff: Backoff = Backoff(base: .seconds(1), limit: .seconds(600))) { self.backoff = backoff }

    /// Until when nothing should be sent to a service; nil: now is fine.
    package func pausedUntil(_ service: PushToken.Service, now: Duration) -> Duration? {
        guard let pause = pauses[service], pause.until > now else { return nil }
        return pause.until
    }

    /// Notes that a service works.
    package mutating func succeeded(_ service: PushToken.Service) { pauses[service] = nil }

    /// Notes that a service does not work now. Many failures at once count as one: those that come while it is paused
    /// already only lengthen the pause if the service asks for it.
    package mutating func failed(
        _ service: PushToken.Service,
        asked: Duration?,
        now: Duration,
        random: Double = .random(in: 0...1)
    ) {
        var pause = pauses[service] ?? Pause()
        if pause.until > now {
            if let asked { pause.until = max(pause.until, now + min(asked, backoff.limit)) }
        } else {
            pause.failures += 1
            pause.until = now + backoff.delay(failures: pause.failures, asked: asked, random: random)
        }
        pauses[service] = pause
    }
}
