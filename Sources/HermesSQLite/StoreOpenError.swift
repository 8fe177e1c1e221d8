// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Why a data directory cannot be used. For the person who starts the server.
package struct StoreOpenError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is the matter.
    package enum Reason: Sendable, Hashable {
        /// The file is not what it was when it was written.
        case damaged
        /// A newer version of Hermes wrote it.
        case newer
        /// It is somebody else's file.
        case notHermes
        /// Neither the directory nor the file can be written.
        case unwritable
        /// Another process uses the directory.
        case locked
        /// There is no room to open it.
        case diskFull
        /// Anything else; the message has SQLite's words.
        case failed
    }

    package let reason: Reason
    /// The file or directory.
    package let path: String
    /// What happened and what can be done, one or two sentences.
    package let message: String

    package var description: String { "\(path): \(message)" }
}
