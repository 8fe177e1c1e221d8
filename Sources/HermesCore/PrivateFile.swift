// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Files that only the owner can open, even at the moment of their creation.
package enum PrivateFile {
    /// Creates a file that does not exist yet.
    ///
    /// `FileManager` restricts the mode of a file only after the creation, so others could open the file in between.
    ///
    /// - Parameter directory: the directory whose owner becomes the file's owner if root creates the file; if nil, the
    ///   file belongs to root.
    /// - Returns: false if the file cannot be created or already exists.
    package static func create(_ path: String, contents: [UInt8] = [], for directory: String? = nil) -> Bool {
        failureToCreate(path, contents: contents, for: directory) == nil
    }

    /// Creates a file like ``create(_:contents:for:)``.
    ///
    /// - Returns: the system's error number if the file cannot be created or already exists; nil if it was created.
    package static func failureToCreate(
        _ path: String,
        contents: [UInt8] = [],
        for directory: String? = nil
    ) -> Int32? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        if let directory { DirectoryOwner.give(descriptor, toOwnerOf: directory) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: Data(contents))
            try file.close()
            return nil
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            return EIO
        }
    }

    /// Replaces a file of the data directory in one step.
    ///
    /// - Returns: false if the file cannot be replaced; the file then keeps its contents.
    package static func replace(_ path: String, contents: [UInt8]) -> Bool {
        let new = path + ".new"
        // An earlier process may have left this file, if the process ended during a write.
        try? FileManager.default.removeItem(atPath: new)
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard create(new, contents: contents, for: directory) else { return false }
        guard rename(new, path) == 0 else {
            try? FileManager.default.removeItem(atPath: new)
            return false
        }
        return true
    }
}
