// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The waiting times before a client reconnects.
///
/// A restarting server loses all its clients at once; random delays keep them from returning at once.
public struct ReconnectPolicy: Hashable, Sendable {
    /// The windows of the first tries. Each try comes at a random moment of its window, and the windows follow one
    /// another.
    package var windows: [Duration]
    /// The delays of later tries; the last one repeats. Empty: no further tries.
    package var delays: [Duration]
    /// The largest deviation of a delay, up or down, as a fraction of it.
    package var jitter: Double
    /// The longest window of the server's advice that is obeyed.
    package var maxAdvisedWindow: Duration

    /// Creates a policy.
    ///
    /// - Parameters:
    ///   - windows: the windows of the first tries.
    ///   - delays: the delays of later tries.
    ///   - jitter: the largest deviation of a delay, as a fraction: 0 to 1.
    ///   - maxAdvisedWindow: the longest window of the server's advice that is obeyed.
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

    /// Six tries within 15 s each, then tries after 1, 2, 5 and 10 minutes: for apps, because a server has many of them
    /// as clients.
    ///
    /// A changed network or an app that comes to the foreground restarts the policy with a try at once.
    public static let standard = ReconnectPolicy(
        windows: Array(repeating: .seconds(15), count: 6),
        delays: [.seconds(60), .seconds(120), .seconds(300), .seconds(600)]
    )
    /// The first tries within 1 s, then every few seconds: for a person at a terminal.
    public static let interactive = ReconnectPolicy(
        windows: [.seconds(1), .seconds(1), .seconds(1), .seconds(2), .seconds(2), .seconds(3)],
        delays: [.seconds(3), .seconds(5), .seconds(10)],
        maxAdvisedWindow: .seconds(2)
    )
    /// No reconnecting: the first failure is final.
    package static let never = ReconnectPolicy(windows: [], delays: [])

    /// Returns the wait before the next try, counted from the start of its window if it has one.
    ///
    /// - Parameters:
    ///   - failures: failed tries since the connection last was well.
    ///   - random: a random number, at least 0 and below 1.
    /// - Returns: the wait; nil if there is no further try.
    func delay(afterFailures failures: Int, random: Double) -> Duration? {
        if failures < windows.count { return windows[max(0, failures)] * random }
        guard let last = delays.last else { return nil }
        let index = failures - windows.count
        let delay = index < delays.count ? delays[index] : last
        return delay * (1 + jitter * (2 * random - 1))
    }
}
