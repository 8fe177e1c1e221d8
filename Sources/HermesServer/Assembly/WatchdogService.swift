// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import ServiceLifecycle

/// Ends the process if it was told to stop and does not end in time. Nothing is lost, because everything that was
/// acknowledged is already committed.
struct WatchdogService: Service {
    /// The time within which the process must end, counted from the request to stop.
    let patience: Duration
    let logger: Logger

    func run() async throws {
        try? await gracefulShutdown()
        // The timer has a thread of its own, because Swift's thread pool may be blocked.
        Thread.detachNewThread { [patience, logger] in
            Thread.sleep(forTimeInterval: patience / .seconds(1))
            logger.critical("did not stop in time; ending now", metadata: ["after": "\(patience)"])
            exit(ServerFailure.ExitCode.internalError.rawValue)
        }
    }
}
