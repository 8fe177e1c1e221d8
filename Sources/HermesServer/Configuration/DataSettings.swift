// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The place of the stored data, and the store that holds it.
package struct DataSettings: Sendable, Hashable {
    /// The store of accounts and messages.
    package enum StoreKind: String, CaseIterable, Sendable {
        case sqlite
        /// In memory: the data is lost when the server ends.
        case memory
    }

    /// Which faults the data survives after it has been committed.
    package enum Durability: String, CaseIterable, Sendable {
        /// Committed data survives if the process is killed.
        case normal
        /// Committed data also survives a power cut.
        case full
    }

    /// The path of the directory of the database, its lock and the control socket.
    package var directory = "./hermes-data"
    package var storeKind = StoreKind.sqlite
    package var durability = Durability.normal

    package init() {}
}

extension DataSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .path(
            \.directory,
            "data.directory",
            "The directory of the database, its lock and the control socket. The server creates the directory if it is "
                + "missing."
        ),
        .choice(
            \.storeKind,
            "store.kind",
            "Where accounts and messages are stored. With 'memory', they are lost when the server stops."
        ),
        .choice(
            \.durability,
            "store.durability",
            "Which faults the data survives after it has been acknowledged. With 'normal', it survives if the process "
                + "is killed. With 'full', it also survives a power cut."
        ),
    ]
}
