// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// Reads files that an operator names.
package enum BoundedFile {
    private struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    /// Reads the beginning of a file.
    ///
    /// - Parameter count: the largest number of bytes to read.
    /// - Throws: the reason why the file cannot be read. A pipe is refused, because reading a pipe waits for its
    ///   writer.
    package static func read(_ path: String, atMost count: Int) throws -> Data {
        // Without O_NONBLOCK, even opening a pipe waits for its writer. The flag changes nothing for regular files.
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw Refusal(description: String(cString: strerror(errno))) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard lseek(descriptor, 0, SEEK_CUR) >= 0 else { throw Refusal(description: "it is a pipe") }
        var status = stat()
        guard fstat(descriptor, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR else {
            throw Refusal(description: "it is a directory")
        }
        return try file.read(upToCount: count) ?? Data()
    }

    /// Reads a whole file.
    ///
    /// - Parameter maxBytes: the size of the largest file that is accepted.
    /// - Throws: the reason if the file cannot be read, or if it is too large.
    package static func read(_ path: String, maxBytes: Int) throws -> Data {
        let data = try read(path, atMost: maxBytes + 1)
        guard data.count <= maxBytes else { throw Refusal(description: "it is larger than \(maxBytes) bytes") }
        return data
    }
}
