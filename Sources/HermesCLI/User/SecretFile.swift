// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads files with passwords and keys. A file may be a pipe, as in `--password-file <(pass show hermes)`.
enum SecretFile {
    /// The largest number of bytes that are read.
    private static let maxBytes = 64 * 1024

    /// - Returns: the beginning of the file; nil if it cannot be read.
    static func read(_ path: String) -> Data? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        var data = Data()
        do {
            while data.count < maxBytes, let next = try file.read(upToCount: maxBytes - data.count), !next.isEmpty {
                data.append(next)
            }
        } catch {
            return nil
        }
        return data
    }
}
