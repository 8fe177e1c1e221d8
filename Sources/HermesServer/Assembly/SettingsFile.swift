// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The settings file as it was at the start. The server never reads settings again, so it tells an operator who
/// expects it on SIGHUP.
package struct SettingsFile: Sendable {
    private static let maxBytes = 1 << 20

    package let path: String
    /// The hash of the contents. The contents are not kept, because a settings file may contain secrets.
    private let hash: Int?

    package init(_ path: String) {
        self.path = path
        hash = Self.hash(path)
    }

    /// Whether the file has other contents than at the start.
    package var hasChanged: Bool { Self.hash(path) != hash }

    /// Returns the hash of the whole file, which `Data` does not compute; nil if the file cannot be read.
    private static func hash(_ path: String) -> Int? {
        (try? BoundedFile.read(path, atMost: maxBytes)).map { Array($0).hashValue }
    }
}
