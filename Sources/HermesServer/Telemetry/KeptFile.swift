// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore

/// A file in the data directory that is written as a whole, and whose loss does no harm.
struct KeptFile: Sendable {
    let path: String
    let maxBytes: Int

    init(_ name: String, in directory: String, maxBytes: Int) {
        path = "\(directory)/\(name)"
        self.maxBytes = maxBytes
    }

    /// Returns the contents; nil if the file is empty or cannot be read. If the file is too long, returns one byte
    /// more than the limit allows.
    func read() -> [UInt8]? {
        guard let data = try? BoundedFile.read(path, atMost: maxBytes + 1), !data.isEmpty else { return nil }
        return Array(data)
    }

    /// Replaces the file in one step.
    func write(_ bytes: [UInt8]) throws {
        guard PrivateFile.replace(path, contents: bytes) else {
            throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path])
        }
    }
}
