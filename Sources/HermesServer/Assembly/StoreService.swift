// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import ServiceLifecycle

/// Stops after every other service. Then commits the last operations of all services and closes the store.
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
