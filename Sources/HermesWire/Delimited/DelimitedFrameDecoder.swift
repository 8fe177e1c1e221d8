// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream into Delimited frames; frames of length zero are skipped.
package struct DelimitedFrameDecoder: FrameDecoder {
    /// The longest body that is accepted, in bytes.
    private let maxFrameBytes: Int
    /// Whether the bytes come from ``WebSocketPackets``, which marks text messages.
    private let takesText: Bool
    /// The complete pieces of an unfinished text message. They are at the start of the buffer.
    private var pieces = Pieces()

    private struct Pieces {
        /// The size of the pieces in bytes, with their prefixes.
        var bytes = 0
        /// The size of the text in bytes.
        var textBytes = 0
    }

    /// Creates a decoder of a stream without text messages.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes.
    package init(maxFrameBytes: Int = DelimitedFrame.defaultMaxBytes) {
        self.init(maxFrameBytes: maxFrameBytes, takesText: false)
    }

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - maxFrameBytes: the longest body that is accepted, in bytes.
    ///   - takesText: whether the bytes were written by ``WebSocketPackets``, which marks text messages.
    package init(maxFrameBytes: Int, takesText: Bool) {
        self.maxFrameBytes = maxFrameBytes
        self.takesText = takesText
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> DelimitedFrame? {
        while let (told, prefixBytes) = try DelimitedPrefix.peek(buffer) {
            if takesText, told & DelimitedPrefix.text != 0 {
                guard let text = try nextText(from: &buffer) else { return nil }
                if text.readableBytes == 0 { continue }
                return DelimitedFrame(body: text, isJSON: true)
            }
            guard let length = Int(exactly: told), length <= maxFrameBytes else {
                throw .frameTooLong(told, limit: maxFrameBytes)
            }
            guard buffer.readableBytes - prefixBytes >= length else { return nil }
            buffer.moveReaderIndex(forwardBy: prefixBytes)
            if length == 0 { continue }
            return buffer.readSlice(length: length).map { DelimitedFrame(body: $0) }
        }
        return nil
    }

    /// Removes a whole text message.
    ///
    /// Each piece of an incomplete message is examined once. The pieces with their prefixes may take about twice the
    /// limit. This bound keeps many pieces of a few bytes each from taking several times the limit.
    private mutating func nextText(from buffer: inout ByteBuffer) throws(WireError) -> ByteBuffer? {
        while let (told, prefixBytes) = try DelimitedPrefix.peek(buffer, at: pieces.bytes) {
            let length = Int(told & UInt64(UInt32.max))
            guard length <= maxFrameBytes - pieces.textBytes, pieces.bytes <= 2 * maxFrameBytes else {
                throw .frameTooLong(pieces.bytes + length, limit: maxFrameBytes)
            }
            guard buffer.readableBytes - pieces.bytes - prefixBytes >= length else { return nil }
            guard told & DelimitedPrefix.more == 0 else {
                pieces.bytes += prefixBytes + length
                pieces.textBytes += length
                continue
            }
            defer { pieces = Pieces() }
            return pieces.bytes == 0
                ? Self.readPiece(from: &buffer)
                : Self.join(pieces.bytes + prefixBytes + length, from: &buffer, textBytes: pieces.textBytes + length)
        }
        return nil
    }

    private static func readPiece(from buffer: inout ByteBuffer) -> ByteBuffer? {
        guard let (told, prefixBytes) = try? DelimitedPrefix.peek(buffer) else { return nil }
        buffer.moveReaderIndex(forwardBy: prefixBytes)
        return buffer.readSlice(length: Int(told & UInt64(UInt32.max)))
    }

    private static func join(_ bytes: Int, from buffer: inout ByteBuffer, textBytes: Int) -> ByteBuffer? {
        guard var all = buffer.readSlice(length: bytes) else { return nil }
        var text = ByteBuffer()
        text.reserveCapacity(textBytes)
        while var piece = readPiece(from: &all) { text.writeBuffer(&piece) }
        return text
    }
}
