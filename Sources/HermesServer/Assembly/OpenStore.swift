// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import Logging
import Metrics

/// The store that the configuration asks for, as the core's ports.
struct OpenStore: Sendable {
    let accounts: any AccountStore
    let messages: any MessageStore
    let social: any SocialStore
    let sessions: any SessionStore
    let apiKeys: any APIKeyStore
    let pushTokens: any PushTokenStore
    let webhooks: any WebhookStore
    /// Writes everything back and lets go of the data directory.
    let close: @Sendable () throws -> Void

    /// One object that is all of them.
    private init(
        _ store: some AccountStore & MessageStore & SocialStore & SessionStore & PushTokenStore & WebhookStore
            & APIKeyStore,
        close: @escaping @Sendable () throws -> Void
    ) {
        accounts = store
        messages = store
        social = store
        sessions = store
        pushTokens = store
        webhooks = store
        apiKeys = store
        self.close = close
    }

    /// Opens the data directory, or makes a store in memory.
    ///
    /// - Parameter memory: the store to use in place of a new one in memory.
    static func open(
        _ settings: ServerSettings,
        memory: MemoryStore? = nil,
        logger: Logger
    ) throws(ServerFailure) -> OpenStore {
        let kept = StoreSettings(settings)
        switch settings.store {
        case .memory:
            let store = memory ?? MemoryStore(settings: kept)
            return OpenStore(store, close: {})
        case .sqlite:
            do throws(StoreOpenError) {
                let store = try SQLiteStore.open(
                    directory: settings.dataDirectory,
                    durability: settings.durability == .full ? .full : .normal,
                    settings: kept,
                    logger: logger,
                    damaged: { Counter(label: "hermes_store_damaged_rows_total").increment() }
                )
                return OpenStore(store, close: { try store.close() })
            } catch {
                throw ServerFailure(error)
            }
        }
    }
}
