// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import Logging
import Synchronization

/// Shows on `/readyz` what the server reads at its start, and logs the steps that took long.
///
/// State: a `Mutex` around the present step.
final class StartProgress: Sendable {
    private struct Step {
        let name: String
        let begunAt: Duration
    }

    /// A step is logged if it takes at least this long.
    private static let long = Duration.seconds(1)

    private let health: HealthState
    private let time: any TimeSource
    private let logger: Logger
    private let step = Mutex<Step?>(nil)

    init(_ health: HealthState, time: any TimeSource, logger: Logger) {
        self.health = health
        self.time = time
        self.logger = logger
    }

    func note(_ progress: Messenger.LoadProgress) {
        let now = time.uptime()
        switch progress {
        case .began(let name):
            health.starting("reading the \(name)")
            step.withLock { $0 = Step(name: name, begunAt: now) }
        case .ended(let count):
            let ended = step.withLock { step in
                defer { step = nil }
                return step
            }
            guard let ended, now - ended.begunAt >= Self.long else { return }
            logger.info(
                "read the \(ended.name)",
                metadata: ["count": "\(count)", "seconds": "\((now - ended.begunAt).components.seconds)"]
            )
        }
    }
}

extension HealthState {
    /// Shows what the opening of the database is doing.
    func note(_ progress: OpeningProgress) {
        switch progress {
        case .checking: starting("checking the database, which the last run did not close")
        case .migrating(let name): starting("bringing the database to this version (\(name))")
        case .working: working()
        }
    }
}
