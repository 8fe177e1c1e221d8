// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// The last attempts to post webhooks, for the operator. They are kept in memory only, and their number and size are
/// limited. Thread-safe.
///
/// State: one `Mutex`.
package final class WebhookAttempts: Sendable {
    package struct Attempt: Sendable {
        /// The number of this attempt among all attempts; the numbers ascend.
        package let number: Int64
        package let time: Timestamp
        package let event: WebhookEvent
        /// The number of this attempt for its event, counted from 1.
        package let attempt: Int
        /// The HTTP status; nil if there was no answer.
        package let status: Int?
        /// The reason why the attempt failed; nil if the receiver has accepted the event.
        package let failure: String?
        package let duration: Duration
    }

    package static let maxAttempts = 500
    package static let maxBytes = 1 << 20
    private static let maxFailureBytes = 200

    private struct State {
        /// The attempts, the newest last.
        var attempts: [Attempt] = []
        var bytes = 0
        var last: Int64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func add(
        _ event: WebhookEvent,
        attempt: Int,
        status: Int?,
        failure: String?,
        time: Timestamp,
        duration: Duration
    ) {
        let failure = failure.map { String(decoding: $0.utf8.prefix(Self.maxFailureBytes), as: UTF8.self) }
        state.withLock { state in
            state.last += 1
            state.attempts.append(
                Attempt(
                    number: state.last,
                    time: time,
                    event: event,
                    attempt: attempt,
                    status: status,
                    failure: failure,
                    duration: duration
                )
            )
            state.bytes += event.body.count
            while state.attempts.count > Self.maxAttempts || state.bytes > Self.maxBytes, state.attempts.count > 1 {
                state.bytes -= state.attempts.removeFirst().event.body.count
            }
        }
    }

    /// Returns the newest attempts, the newest first.
    package func newest(_ limit: Int) -> [Attempt] {
        state.withLock { Array($0.attempts.suffix(max(0, limit)).reversed()) }
    }

    /// Returns the event with this id from the remembered attempts; nil if there is none.
    package func event(_ id: String) -> WebhookEvent? {
        state.withLock { $0.attempts.last { $0.event.id == id }?.event }
    }
}
