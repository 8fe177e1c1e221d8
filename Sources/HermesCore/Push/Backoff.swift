// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The wait before a retry. It doubles each time, up to a limit. It is random, so that clients that failed at the same
/// time do not retry at the same time.
package struct Backoff: Sendable, Hashable {
    package var base: Duration
    package var limit: Duration

    package init(base: Duration, limit: Duration) {
        self.base = base
        self.limit = limit
    }

    /// Returns the wait after a number of failures in a row (at least 1). The wait is random, between half of the
    /// present step and the whole step.
    ///
    /// - Parameters:
    ///   - asked: the wait that the other side asked for. It is cut to `limit`, and the usual wait is added to it.
    ///   - random: a random number from 0 to 1.
    package func delay(failures: Int, asked: Duration? = nil, random: Double = .random(in: 0...1)) -> Duration {
        let step = min(base * (1 << min(max(0, failures - 1), 20)), limit)
        let spread = step / 2 + (step / 2) * random
        guard let asked else { return spread }
        return max(min(asked, limit), .zero) + spread
    }
}

/// Tracks which push services are paused. Does no I/O. The owner is ``PushHandOff``.
package struct ServiceHealth: Sendable {
    private struct Pause: Sendable {
        var failures = 0
        var until = Duration.zero
    }

    private let backoff: Backoff
    private var pauses: [PushToken.Service: Pause] = [:]

    package init(backoff: Backoff = Backoff(base: .seconds(1), limit: .seconds(600))) { self.backoff = backoff }

    /// Returns the end of a service's pause; nil if the service is not paused.
    package func pausedUntil(_ service: PushToken.Service, now: Duration) -> Duration? {
        guard let pause = pauses[service], pause.until > now else { return nil }
        return pause.until
    }

    /// Records that a service works.
    package mutating func succeeded(_ service: PushToken.Service) { pauses[service] = nil }

    /// Records a failure of a service. Many failures at once count as one failure, because failures during a pause are
    /// not counted. A failure during a pause lengthens the pause only if the service requests a wait.
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
