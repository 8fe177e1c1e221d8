// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream into LiveRoom frames without parsing their bodies (see `LiveRoomFrame.validateBody()`).
package struct LiveRoomFrameDecoder: FrameDecoder {
    /// The longest body that is accepted, in bytes.
    private let maxFrameBytes: Int

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes.
    package init(maxFrameBytes: Int = 65_536) {
        self.maxFrameBytes = maxFrameBytes
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> LiveRoomFrame? {
        let start = buffer.readerIndex
        guard let told = buffer.getInteger(at: start, endianness: .little, as: UInt32.self) else { return nil }
        guard let length = Int(exactly: told), length <= maxFrameBytes else {
            throw .frameTooLong(told, limit: maxFrameBytes)
        }
        guard
            buffer.readableBytes - LiveRoomFrame.headerBytes >= length,
            let type = buffer.getInteger(at: start + 4, endianness: .little, as: UInt16.self),
            let bytes = buffer.readSlice(length: LiveRoomFrame.headerBytes + length)
        else { return nil }
        return LiveRoomFrame(type: LiveRoomFrameType(rawValue: type), bytes: bytes)
    }
}
