// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// A credential that is made or fetched once and used until it expires. One task makes it while others wait.
///
/// State: protected by the actor.
actor CachedCredential {
    /// A credential and its lifetime.
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

    /// Returns the present credential, or a new one if there is none or it has expired.
    func text() async throws -> String {
        if let current, time.uptime() - current.madeAt < current.lifetime { return current.text }
        if let making { return try await Self.value(of: making).text }
        // The task is unstructured, because all callers wait for it.
        let task = Task { [make] in try await make() }
        making = task
        defer { making = nil }
        let fresh = try await Self.value(of: task)
        current = (fresh.text, time.uptime(), fresh.lifetime)
        return fresh.text
    }

    /// Waits for a credential. Callers are cancelled when the server stops. In that case they do not wait for the
    /// credential.
    private static func value(of task: Task<Fresh, any Error>) async throws -> Fresh {
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Notes that the other side refused `text`. The next credential is a new one, unless it was renewed meanwhile.
    ///
    /// - Parameter minimumAge: a younger credential stays, because a new one would not help.
    /// - Returns: whether a retry makes sense now.
    func refused(_ text: String, minimumAge: Duration = .zero) -> Bool {
        guard let current, current.text == text else { return true }
        guard time.uptime() - current.madeAt >= minimumAge else { return false }
        self.current = nil
        return true
    }
}
