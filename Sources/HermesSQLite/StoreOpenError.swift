// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The reason why a data directory cannot be used, for the person who starts the server.
package struct StoreOpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package enum Reason: Sendable, Hashable {
        /// The file is damaged.
        case damaged
        /// A newer version of Hermes wrote it.
        case newer
        /// The file belongs to another program.
        case notHermes
        /// The directory or the file cannot be written.
        case unwritable
        /// Another process uses the directory.
        case locked
        /// The disk is too full to open the database.
        case diskFull
        /// Another error; ``message`` contains its text.
        case failed
    }

    package let reason: Reason
    /// The file or directory that cannot be used.
    package let path: String
    /// The problem and its remedy, in one or two sentences.
    package let message: String

    package var description: String { "\(path): \(message)" }
}
