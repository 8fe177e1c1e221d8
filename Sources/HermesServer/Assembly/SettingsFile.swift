// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways

/// The settings file as it was when the server started. The server reads settings only at its start. If the file has
/// changed, the server logs this on SIGHUP, because an operator may expect SIGHUP to apply the new settings.
package struct SettingsFile: Sendable {
    package let path: String
    /// The hash of the contents. The contents are not kept, because a settings file may contain secrets.
    private let hash: Int?

    package init(_ path: String) {
        self.path = path
        hash = Self.hash(path)
    }

    /// Whether the contents of the file have changed since the start.
    package var hasChanged: Bool { Self.hash(path) != hash }

    /// Returns the hash of the whole file; nil if the file cannot be read. The hash of a `Data` may cover only a part
    /// of the bytes.
    private static func hash(_ path: String) -> Int? {
        (try? BoundedFile.read(path, atMost: SettingSources.maxFileBytes)).map { Array($0).hashValue }
    }
}
