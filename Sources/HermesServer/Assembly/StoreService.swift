// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import ServiceLifecycle

/// Watches the file of the database. Stops after every other service. Then commits the last operations of all services
/// and closes the store.
struct StoreService: Service {
    let messenger: Messenger
    let store: OpenStore
    let logger: Logger

    func run() async throws {
        if let file = store.file {
            await cancelWhenGracefulShutdown { [logger] in
                while !Task.isCancelled {
                    file.check(logger)
                    // When the server stops, the sleep throws and the loop ends.
                    try? await Task.sleep(for: DatabaseFile.interval)
                }
            }
        } else {
            try? await gracefulShutdown()
        }
        await messenger.shutdown()
        do {
            try store.close()
        } catch {
            logger.error("store not closed", metadata: ["error": "\(error)"])
        }
    }
}
