// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// A credential that is made or fetched once and used until it grows old. One task makes it while the others wait.
///
/// State: the actor's.
actor CachedCredential {
    /// A credential and how long it may be used.
    struct Fresh: Sendable {
        let text: String
        let lifetime: Duration
    }

    private let make: @Sendable () async throws -> Fresh
    private let time: any TimeSource
    private var current: (text: String, madeAt: Duration, lifetime: Duration)?
    private var making: Task<Fresh, any Error>?

    init(time: any TimeSource, make: @escaping @Sendable () async throws -> Fresh) {
        self.time = time
        self.make = make
    }

    /// The credential in use; a new one if there is none, or if its time is over.
    func text() async throws -> String {
        if let current, time.uptime() - current.madeAt < current.lifetime { return current.text }
        if let making { return try await making.value.text }
        // Not structured: it is waited for by everybody who comes meanwhile, whoever of them is cancelled.
        let task = Task { [make] in try await make() }
        making = task
        defer { making = nil }
        let fresh = try await task.value
        current = (fresh.text, time.uptime(), fresh.lifetime)
        return fresh.text
    }

    /// The other side refused `text`: the next one is new, unless somebody has renewed it already.
    ///
    /// - Parameter minimumAge: one that is younger stays, for a new one would be no better.
    /// - Returns: whether trying again makes sense now.
    func refused(_ text: String, minimumAge: Duration = .zero) -> Bool {
        guard let current, current.text == text else { return true }
        guard time.uptime() - current.madeAt >= minimumAge else { return false }
        self.current = nil
        return true
    }
}
