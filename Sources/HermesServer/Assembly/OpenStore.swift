// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import Logging
import Metrics

/// The configured store, as the core's ports.
struct OpenStore: Sendable {
    let accounts: any AccountStore
    let messages: any MessageStore
    let social: any SocialStore
    let sessions: any SessionStore
    let apiKeys: any APIKeyStore
    let administrators: any AdministratorStore
    let pushTokens: any PushTokenStore
    let webhooks: any WebhookStore
    /// Writes everything back and releases the data directory.
    let close: @Sendable () throws -> Void
    /// Tries a write, and reports the reason why it failed; nil if it succeeded.
    let tryWrite: Readiness.Probe
    /// The file of the database; nil if the store is in memory.
    let file: DatabaseFile?

    /// Creates the ports from one object that implements all of them.
    private init(
        _ store: some AccountStore & MessageStore & SocialStore & SessionStore & PushTokenStore & WebhookStore
            & APIKeyStore & AdministratorStore,
        close: @escaping @Sendable () throws -> Void = {},
        tryWrite: @escaping Readiness.Probe = { done in done(nil) },
        file: DatabaseFile? = nil
    ) {
        accounts = store
        messages = store
        social = store
        sessions = store
        pushTokens = store
        webhooks = store
        apiKeys = store
        administrators = store
        self.close = close
        self.tryWrite = tryWrite
        self.file = file
    }

    /// Opens the data directory, or creates a store in memory.
    ///
    /// - Parameters:
    ///   - memory: an existing store in memory, which is used instead of a new one.
    ///   - progress: gets the steps that may take long: a check of the whole database file, and migrations.
    static func open(
        _ settings: ServerSettings,
        memory: MemoryStore? = nil,
        logger: Logger,
        progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in }
    ) throws(ServerFailure) -> OpenStore {
        let kept = settings.storeSettings
        switch settings.data.storeKind {
        case .memory:
            let store = memory ?? MemoryStore(settings: kept)
            return OpenStore(store)
        case .sqlite:
            // The counter is created now, so that the metric is shown before the first damaged row.
            let damagedRows = Counter(label: "hermes_store_damaged_rows_total")
            do throws(StoreOpenError) {
                let store = try SQLiteStore.open(
                    directory: settings.data.directory,
                    durability: settings.data.durability == .full ? .full : .normal,
                    settings: kept,
                    logger: logger,
                    progress: progress,
                    damaged: { damagedRows.increment() }
                )
                let file = DatabaseFile("\(settings.data.directory)/\(SQLiteStore.fileName)")
                return OpenStore(
                    store,
                    close: { try store.close() },
                    tryWrite: { done in
                        if let problem = file.problem { done(problem) } else { store.tryWrite(done) }
                    },
                    file: file
                )
            } catch {
                throw ServerFailure(error)
            }
        }
    }
}
