// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream of bytes into frames. Each connection has one decoder for each direction.
///
/// The connection's owner appends what it reads to one ByteBuffer and calls `next(from:)` until that call returns nil.
/// A decoder stores no bytes. While a frame is incomplete, a call examines at most a header. So a frame that arrives
/// byte by byte costs no more than a frame that arrives at once. Bodies are slices of the buffer, never copies.
package protocol FrameDecoder: Sendable {
    /// The frame type that the decoder produces.
    associatedtype Frame: WireFrame

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest accepted body in bytes, without the header. A longer body is refused as
    ///   soon as its length is known, before anything is allocated and before its bytes arrive.
    init(maxFrameBytes: Int)

    /// Removes the next frame from the buffer.
    ///
    /// - Parameter buffer: the bytes that are not consumed yet. The reader index moves past the returned frame. It does
    ///   not move if the frame is incomplete or if an error is thrown, so the next call throws the same error.
    /// - Returns: the frame, or nil if more bytes are needed.
    /// - Throws: WireError if the bytes break the protocol; the connection cannot continue.
    mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> Frame?
}

/// One frame of a protocol.
package protocol WireFrame: Hashable, Sendable {
    /// The frame's size on the wire, header included, in bytes.
    var encodedBytes: Int { get }

    /// The number of frames on the wire that this value represents; 1 unless a decoder combines several.
    var frameCount: Int { get }

    /// Appends the frame, header and body.
    ///
    /// - Throws: WireError if the body is too long for the header. If the function throws, it writes nothing.
    func write(into buffer: inout ByteBuffer) throws(WireError)
}

extension WireFrame {
    package var frameCount: Int { 1 }
}
