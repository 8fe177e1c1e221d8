// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension TLSOptions.Source {
    /// The problem of a file that cannot be read; nil for a readable file, for text and for data.
    var fileProblem: String? {
        guard case .file(let path) = self, access(path, R_OK) != 0 else { return nil }
        let number = errno
        return "\(path) cannot be read: \(String(cString: strerror(number)))"
    }
}
