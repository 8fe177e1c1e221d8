// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import Metrics
import ServiceLifecycle

/// Deletes what is delivered or expired, a little at a time.
struct HousekeepingService: Service {
    /// Between two rounds. Short, because what goes soon after it was written goes cheaply, and because a round deletes
    /// a bounded amount: under load it must keep up with what is delivered.
    private static let interval = Duration.seconds(1)

    let messenger: Messenger
    let logger: Logger

    func run() async throws {
        let purged = Counter(label: "hermes_store_purged_entries_total")
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do throws(HermesError) {
                    messenger.steadyTime.look()
                    let count = try await messenger.housekeeping(
                        now: messenger.time.now(),
                        isClockConfirmed: messenger.steadyTime.isConfirmed
                    )
                    purged.increment(by: count)
                } catch {
                    // Cut off because the server stops.
                    if error.code == .shuttingDown { break }
                    logger.warning("housekeeping failed", metadata: ["error": "\(error.message)"])
                }
                // Throws when the server stops; then the loop ends.
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}
