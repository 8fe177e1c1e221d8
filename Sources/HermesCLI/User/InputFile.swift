// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads files that the command line names. A file may be a pipe, as in `--password-file <(pass show hermes)`.
enum InputFile {
    private static let pieceBytes = 64 * 1024

    /// Returns the contents of a file, or the beginning of a long file.
    ///
    /// - Parameter limit: the largest number of bytes that are read.
    /// - Throws: UnreadableFile, also for a directory.
    static func read(_ path: String, upTo limit: Int) throws(UnreadableFile) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw UnreadableFile(number: errno) }
        defer { close(descriptor) }
        var data = Data()
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        while data.count < limit {
            let count = Foundation.read(descriptor, &piece, min(pieceBytes, limit - data.count))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw UnreadableFile(number: errno) }
            if count == 0 { break }
            data.append(contentsOf: piece[..<count])
        }
        return data
    }
}

/// The error of a file that cannot be read. Its description is the system's reason.
struct UnreadableFile: Error, Hashable, CustomStringConvertible {
    /// The system's error number.
    let number: Int32

    var description: String { String(cString: strerror(number)) }
}
