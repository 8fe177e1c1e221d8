// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import ServiceLifecycle

/// Outlives every other service, then commits their last operations and closes the store.
struct StoreService: Service {
    let messenger: Messenger
    let store: OpenStore
    let logger: Logger

    func run() async throws {
        try? await gracefulShutdown()
        await messenger.shutdown()
        do {
            try store.close()
        } catch {
            logger.error("store not closed", metadata: ["error": "\(error)"])
        }
    }
}
