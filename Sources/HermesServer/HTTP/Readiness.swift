// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics
import NIOCore
import Synchronization

/// Finds out whether the store works. It tries a small write, because a full disk still answers reads.
///
/// There is at most one write a second, and one at a time, so a store that hangs gets no further writes.
///
/// State: one `Mutex`; continuations are resumed outside it.
final class Readiness: Sendable {
    enum Verdict: Sendable, Hashable {
        case ready
        /// The problem, for people.
        case notReady(String)

        /// The answer to `/readyz`.
        var text: String {
            switch self {
            case .ready: "ready\n"
            case .notReady(let reason): "store: \(reason)\n"
            }
        }
    }

    /// Tries a write, and reports the reason why it failed; nil if it succeeded.
    typealias Probe = @Sendable (@escaping @Sendable (String?) -> Void) -> Void

    private struct State {
        var last: (at: Duration, verdict: Verdict)?
        /// The time when the present write began; nil if there is none.
        var beganAt: Duration?
        var waiting: [CheckedContinuation<Verdict, Never>] = []
    }

    /// The answer to a caller.
    private enum Step {
        case tell(Verdict)
        case wait
        case probe
    }

    /// The time for which a verdict is reused.
    private static let age = Duration.seconds(1)
    /// The time for which ``recent()`` returns a verdict.
    private static let memory = Duration.seconds(2)
    /// The time limit of the write.
    private static let patience = TimeAmount.seconds(2)

    private let probe: Probe
    private let loop: any EventLoop
    private let uptime: @Sendable () -> Duration
    private let gauge = Gauge(label: "hermes_ready")
    private let state = Mutex(State())

    /// - Parameters:
    ///   - loop: runs the timer for the time limit of a write.
    ///   - uptime: the time of a clock that never goes back.
    ///   - probe: tries a write.
    init(on loop: any EventLoop, uptime: @escaping @Sendable () -> Duration, probe: @escaping Probe) {
        self.loop = loop
        self.uptime = uptime
        self.probe = probe
    }

    func current() async -> Verdict {
        await withCheckedContinuation { continuation in
            let now = uptime()
            let step = state.withLock { state -> Step in
                if let began = state.beganAt {
                    if now - began > .nanoseconds(Self.patience.nanoseconds) { return .tell(Self.silence(now - began)) }
                    state.waiting.append(continuation)
                    return .wait
                }
                if let last = state.last, now - last.at < Self.age { return .tell(last.verdict) }
                state.beganAt = now
                state.waiting.append(continuation)
                return .probe
            }
            switch step {
            case .tell(let verdict): continuation.resume(returning: verdict)
            case .wait: break
            case .probe: begin()
            }
        }
    }

    /// Returns a verdict that is a few seconds old at most; nil if there is none. Tries no write.
    func recent() -> Verdict? {
        let now = uptime()
        return state.withLock { state in
            if let began = state.beganAt, now - began > .nanoseconds(Self.patience.nanoseconds) {
                return Self.silence(now - began)
            }
            return state.last.flatMap { now - $0.at < Self.memory ? $0.verdict : nil }
        }
    }

    private func begin() {
        // After the time limit, callers are told that the write takes too long; its later result still counts.
        let timer = loop.scheduleTask(in: Self.patience) { [self] in
            tell(Self.silence(.nanoseconds(Self.patience.nanoseconds)), isDone: false)
        }
        probe { [self] problem in
            timer.cancel()
            tell(problem.map(Verdict.notReady) ?? .ready, isDone: true)
        }
    }

    private func tell(_ verdict: Verdict, isDone: Bool) {
        let now = uptime()
        let waiting = state.withLock { state in
            if isDone {
                state.beganAt = nil
                state.last = (now, verdict)
            }
            defer { state.waiting = [] }
            return state.waiting
        }
        gauge.record(verdict == .ready ? 1 : 0)
        for continuation in waiting { continuation.resume(returning: verdict) }
    }

    private static func silence(_ time: Duration) -> Verdict {
        .notReady("a write has waited for \(max(1, time.components.seconds)) s")
    }
}
