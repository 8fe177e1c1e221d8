// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Flushes directories.
enum DirectoryFlush {
    /// Waits until the names of the files in a directory are on the disk. A directory that cannot be opened is left
    /// as it is.
    static func flush(_ directory: String) {
        let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        fsync(descriptor)
    }
}
