// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads files with passwords and keys.
enum SecretFile {
    /// The largest number of bytes that are read.
    private static let maxBytes = 64 * 1024

    /// Returns the beginning of the file.
    static func read(_ path: String) throws(UnreadableFile) -> Data { try InputFile.read(path, upTo: maxBytes) }
}
