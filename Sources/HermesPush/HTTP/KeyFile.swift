// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Foundation
import HermesCore

/// The reason why the configuration of a push service or of webhooks is unusable, for people.
package struct PushConfigurationError: Error, CustomStringConvertible {
    /// The setting's name.
    package let key: String
    package let reason: String

    package init(_ key: String, _ reason: String) {
        self.key = key
        self.reason = reason
    }

    package var description: String { "\(key): \(reason)" }
}

/// Reads key files.
package enum KeyFile {
    /// The largest size of a key file, in bytes.
    private static let maxBytes = 64 * 1024

    /// Returns the content of a file.
    ///
    /// - Throws: ``PushConfigurationError`` that names the setting and the file.
    package static func read(_ path: String, setting: String) throws(PushConfigurationError) -> Data {
        let data: Data
        do {
            data = try BoundedFile.read(path, atMost: maxBytes + 1)
        } catch {
            throw PushConfigurationError(setting, "\"\(AbsolutePath.of(path))\" cannot be read: \(error)")
        }
        guard !data.isEmpty, data.count <= maxBytes else {
            throw PushConfigurationError(setting, "\"\(path)\" is empty or larger than \(maxBytes) bytes")
        }
        return data
    }
}
