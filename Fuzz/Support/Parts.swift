// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where one part of an input ends and the next begins; in no text.
package let separator: [UInt8] = [0xF5, 0xF6, 0xF7, 0xF8]

extension Slice<UnsafeRawBufferPointer> {
    /// What lies between separators; one part at least.
    package func parts(separatedBy separator: [UInt8]) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var part: [UInt8] = []
        for byte in self {
            part.append(byte)
            guard byte == separator.last, part.suffix(separator.count).elementsEqual(separator) else { continue }
            parts.append(Array(part.dropLast(separator.count)))
            part = []
        }
        return parts + [part]
    }
}
