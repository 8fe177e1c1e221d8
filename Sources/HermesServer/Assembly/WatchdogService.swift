// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import ServiceLifecycle

/// Ends a process that was told to stop and does not end. Nothing is lost: everything acknowledged is already
/// committed.
struct WatchdogService: Service {
    /// Counted from the request to stop.
    let patience: Duration
    let logger: Logger

    func run() async throws {
        try? await gracefulShutdown()
        // On a thread of its own, because Swift's pool may be what hangs.
        Thread.detachNewThread { [patience, logger] in
            Thread.sleep(forTimeInterval: patience / .seconds(1))
            logger.critical("did not stop in time; ending now", metadata: ["after": "\(patience)"])
            exit(ServerFailure.ExitCode.internalError.rawValue)
        }
    }
}
