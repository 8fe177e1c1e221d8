// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream into IMPB frames.
///
/// A frame of an unknown type is returned like any other, so that it can be answered with an error.
package struct IMPBFrameDecoder: FrameDecoder {
    /// The longest body that is accepted, in bytes.
    private let maxFrameBytes: Int

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes; the header allows at most 65,535.
    package init(maxFrameBytes: Int = IMPBFrame.maxBodyBytes) {
        self.maxFrameBytes = maxFrameBytes
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> IMPBFrame? {
        let start = buffer.readerIndex
        guard let magic = buffer.getInteger(at: start, as: UInt8.self) else { return nil }
        guard magic == IMPBFrame.magic else {
            throw WireError(.badMagic, "an IMPB frame begins with the byte 129, not \(magic)")
        }
        guard let length = buffer.getInteger(at: start + 6, as: UInt16.self).map(Int.init) else { return nil }
        guard length <= maxFrameBytes else { throw .frameTooLong(length, limit: maxFrameBytes) }
        guard
            buffer.readableBytes >= IMPBFrame.headerBytes + length,
            let seq = buffer.getInteger(at: start + 1, as: UInt32.self),
            let type = buffer.getInteger(at: start + 5, as: UInt8.self)
        else { return nil }
        buffer.moveReaderIndex(forwardBy: IMPBFrame.headerBytes)
        guard let body = buffer.readSlice(length: length) else { return nil }
        return IMPBFrame(seq: seq, type: IMPBFrameType(rawValue: type), body: body)
    }
}
