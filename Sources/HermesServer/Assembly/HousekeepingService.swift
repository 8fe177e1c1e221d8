// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import Metrics
import ServiceLifecycle

/// Deletes delivered or expired entries, a few at a time.
struct HousekeepingService: Service {
    /// The time between two rounds. It is short because recent entries are cheap to delete. Besides, each round
    /// deletes a bounded number of entries, so only frequent rounds keep up under load.
    private static let interval = Duration.seconds(1)

    let messenger: Messenger
    let logger: Logger

    func run() async throws {
        let purged = Counter(label: "hermes_store_purged_entries_total")
        let throttle = LineThrottle()
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do throws(HermesError) {
                    let count = try await messenger.housekeeping(
                        now: messenger.time.now(),
                        isClockConfirmed: messenger.steadyTime.isConfirmed
                    )
                    purged.increment(by: count)
                } catch {
                    // The round was cut off because the server stops.
                    if error.code == .shuttingDown { break }
                    report(error.message, throttle)
                }
                // When the server stops, the sleep throws and the loop ends.
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    /// Logs a failure. Each text is logged at most once a minute, because every round fails while the disk is full.
    private func report(_ problem: String, _ throttle: LineThrottle) {
        guard let skipped = throttle.skipped(problem, now: messenger.time.uptime()) else { return }
        var metadata: Logger.Metadata = ["error": "\(problem)"]
        if skipped > 0 { metadata["skipped"] = "\(skipped)" }
        logger.warning("housekeeping failed", metadata: metadata)
    }
}
