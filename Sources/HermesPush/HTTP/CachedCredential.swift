// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// A credential that is made or fetched once and used until it expires. One task makes it while other tasks wait.
///
/// State: protected by the actor.
actor CachedCredential {
    /// A credential and its lifetime.
    struct Fresh: Sendable {
        let text: String
        let lifetime: Duration
    }

    private struct Current {
        let text: String
        let lifetime: Duration
        let madeAt: Duration
        /// The time of the wall clock (``TimeSource/latest()``) at `madeAt`.
        let date: Timestamp
    }

    /// The largest accepted difference between a credential's age by the wall clock and its age by the uptime.
    private static let maxClockError = Duration.seconds(60)

    private let make: @Sendable () async throws -> Fresh
    private let time: any TimeSource
    private let followsClock: Bool
    private var current: Current?
    private var making: Task<Fresh, any Error>?

    /// - Parameter followsClock: whether the credential contains a time, so that it is made again after the clock was
    ///   set.
    init(time: any TimeSource, followsClock: Bool = false, make: @escaping @Sendable () async throws -> Fresh) {
        self.time = time
        self.followsClock = followsClock
        self.make = make
    }

    /// Returns the present credential, or a new one if there is none or it has expired.
    func text() async throws -> String {
        if let current, isUsable(current) { return current.text }
        if let making { return try await Self.value(of: making).text }
        // The task is unstructured, because all callers wait for it.
        let task = Task { [make] in try await make() }
        making = task
        defer { making = nil }
        let fresh = try await Self.value(of: task)
        current = Current(text: fresh.text, lifetime: fresh.lifetime, madeAt: time.uptime(), date: time.latest())
        return fresh.text
    }

    private func isUsable(_ current: Current) -> Bool {
        let age = time.uptime() - current.madeAt
        guard age < current.lifetime else { return false }
        let shown = Duration.milliseconds(time.latest().rawValue &- current.date.rawValue)
        return !followsClock || (age - Self.maxClockError...age + Self.maxClockError).contains(shown)
    }

    /// Waits for a credential. If the caller is cancelled, because the server stops, the task that makes the credential
    /// is cancelled, too.
    private static func value(of task: Task<Fresh, any Error>) async throws -> Fresh {
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Notes that the other side refused `text`. If `text` is still the present credential, the next call of
    /// ``text()`` makes a new one.
    ///
    /// - Parameter minimumAge: a credential that is younger than this stays, because a new one would not help.
    /// - Returns: whether a retry makes sense now.
    func refused(_ text: String, minimumAge: Duration = .zero) -> Bool {
        guard let current, current.text == text else { return true }
        guard time.uptime() - current.madeAt >= minimumAge else { return false }
        self.current = nil
        return true
    }
}
