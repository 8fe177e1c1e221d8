// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The position in a stream of Delimited frames. It is found without keeping bytes of the stream.
struct DelimitedPosition: Sendable {
    private var length: UInt64 = 0
    private var prefixBytes = 0
    private var remaining: UInt64 = 0

    /// Whether the stream so far consists of whole frames.
    var isBetweenFrames: Bool { prefixBytes == 0 && remaining == 0 }

    /// Follows the next bytes of the stream.
    ///
    /// - Parameter start: the index of these bytes in the buffer. They end at the buffer's writer index.
    /// - Returns: false if a length does not fit into 32 bits, or if its prefix has more than five bytes.
    mutating func follow(_ bytes: ByteBuffer, from start: Int) -> Bool {
        var index = start
        while index < bytes.writerIndex {
            if remaining > 0 {
                let count = min(remaining, UInt64(bytes.writerIndex - index))
                remaining -= count
                index += Int(count)
                continue
            }
            guard let byte = bytes.getInteger(at: index, as: UInt8.self) else { return false }
            index += 1
            length |= UInt64(byte & 0x7F) << (7 * UInt64(prefixBytes))
            prefixBytes += 1
            guard length <= UInt64(UInt32.max) else { return false }
            if byte < 0x80 {
                remaining = length
                length = 0
                prefixBytes = 0
            } else if prefixBytes == DelimitedPrefix.maxBytes {
                return false
            }
        }
        return true
    }
}
