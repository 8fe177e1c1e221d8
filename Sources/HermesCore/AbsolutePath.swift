// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Paths to show in messages. A relative path would not show in which directory the program looks for the file.
package enum AbsolutePath {
    /// Returns the absolute form of a path that may be relative to the working directory.
    package static func of(_ path: String) -> String {
        path.hasPrefix("/") ? path : URL(fileURLWithPath: path).standardizedFileURL.path
    }
}
