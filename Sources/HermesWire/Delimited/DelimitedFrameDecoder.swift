// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts Delimited frames; frames of length zero are skipped.
package struct DelimitedFrameDecoder: FrameDecoder {
    /// The longest body that is accepted, in bytes.
    private let maxFrameBytes: Int

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes.
    package init(maxFrameBytes: Int = DelimitedFrame.defaultMaxBytes) {
        self.maxFrameBytes = maxFrameBytes
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> DelimitedFrame? {
        while let (told, prefixBytes) = try DelimitedPrefix.peek(buffer) {
            guard let length = Int(exactly: told), length <= maxFrameBytes else {
                throw .frameTooLong(told, limit: maxFrameBytes)
            }
            guard buffer.readableBytes - prefixBytes >= length else { return nil }
            buffer.moveReaderIndex(forwardBy: prefixBytes)
            if length == 0 { continue }
            return buffer.readSlice(length: length).map(DelimitedFrame.init(body:))
        }
        return nil
    }
}
