// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// The last attempts to post webhooks, for the operator. In memory alone, bounded in number and bytes. Thread-safe.
///
/// State: one `Mutex`.
package final class WebhookAttempts: Sendable {
    package struct Attempt: Sendable {
        /// Ascending.
        package let number: Int64
        package let time: Timestamp
        package let event: WebhookEvent
        /// 1 for the first one.
        package let attempt: Int
        /// The HTTP status; nil: there was no answer.
        package let status: Int?
        /// Nil: the receiver has taken it.
        package let failure: String?
        package let duration: Duration
    }

    package static let maxAttempts = 500
    package static let maxBytes = 1 << 20
    private static let maxFailureBytes = 200

    private struct State {
        /// The newest last.
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

    /// The newest first.
    package func newest(_ limit: Int) -> [Attempt] {
        state.withLock { Array($0.attempts.suffix(max(0, limit)).reversed()) }
    }

    /// An event that was posted, or should have been; nil if it is forgotten.
    package func event(_ id: String) -> WebhookEvent? {
        state.withLock { $0.attempts.last { $0.event.id == id }?.event }
    }
}
