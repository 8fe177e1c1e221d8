// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The waiting times before a client reconnects.
///
/// A server that restarts loses all its clients at once. Random delays keep the clients from returning at the same
/// moment.
public struct ReconnectPolicy: Hashable, Sendable {
    /// The windows of the first tries. Each try is made at a random moment of its window, and the windows follow one
    /// another.
    package var windows: [Duration]
    /// The delays of later tries; the last delay repeats. If there are no delays, there are no further tries.
    package var delays: [Duration]
    /// The largest deviation of a delay, up or down, as a fraction of the delay.
    package var jitter: Double
    /// The longest window that the client accepts from the server's advice.
    package var maxAdvisedWindow: Duration

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - windows: the windows of the first tries.
    ///   - delays: the delays of later tries; the last delay repeats. If there are no delays, there are no further
    ///     tries.
    ///   - jitter: the largest deviation of a delay, as a fraction: 0 to 1.
    ///   - maxAdvisedWindow: the longest window that the client accepts from the server's advice.
    public init(
        windows: [Duration],
        delays: [Duration],
        jitter: Double = 0.2,
        maxAdvisedWindow: Duration = .seconds(3600)
    ) {
        self.maxAdvisedWindow = maxAdvisedWindow
        self.windows = windows
        self.delays = delays
        self.jitter = min(max(jitter, 0), 1)
    }

    /// The policy for a server with many clients: six tries, each at a random moment of its own window of 15 s, then
    /// tries after 1, 2, 5 and 10 minutes, and then every 10 minutes.
    ///
    /// If the network changes or the app comes to the foreground, the client tries at once, and the policy starts
    /// again.
    public static let standard = ReconnectPolicy(
        windows: Array(repeating: .seconds(15), count: 6),
        delays: [.seconds(60), .seconds(120), .seconds(300), .seconds(600)]
    )
    /// The policy for a person at a terminal: six tries, each at a random moment of its own window of 1 s to 3 s, then
    /// tries after 3 s and 5 s, and then every 10 s.
    public static let interactive = ReconnectPolicy(
        windows: [.seconds(1), .seconds(1), .seconds(1), .seconds(2), .seconds(2), .seconds(3)],
        delays: [.seconds(3), .seconds(5), .seconds(10)],
        maxAdvisedWindow: .seconds(2)
    )
    /// The policy that never reconnects: the first failure is final.
    package static let never = ReconnectPolicy(windows: [], delays: [])
}

extension ConnectionEngine {
    /// The server's advice for reconnecting.
    package struct Advice: Hashable, Sendable {
        /// The shortest wait. The client limits it to an hour.
        var notBefore: Duration
        /// The window that follows the wait. The client limits the window to the policy's longest window, and
        /// reconnects at a random moment of the limited window.
        var window: Duration
        /// The endpoint to connect to; nil if it is the same as before.
        var endpoint: ServerAddress.Endpoint?
    }
}
