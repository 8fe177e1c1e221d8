// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// A store that keeps its records only in memory.
package final class MemoryLocalStore: LocalStore {
    private let table = NIOLockedValueBox(RecordTable())

    /// Creates an empty store.
    package init() {}

    /// Returns all records.
    package func records() -> [LocalRecord] { table.withLockedValue { $0.records } }

    /// Carries out changes.
    package func write(
        _ changes: [LocalChange],
        durably: Bool,
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        table.withLockedValue { $0.apply(changes) }
        completion(.success(()))
    }
}
