// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream of bytes into frames; one decoder per connection and direction.
///
/// The connection's owner appends what it reads to one ByteBuffer and calls `next(from:)` until it returns nil.
/// Decoders keep no bytes of their own and look at no more than a header per call, so a frame that arrives byte by byte
/// costs no more than one that arrives at once. Bodies are slices of the buffer, never copies.
package protocol FrameDecoder: Sendable {
    /// What the decoder cuts.
    associatedtype Frame: WireFrame

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes, the header not counted. A longer one is
    ///   refused as soon as its length is known, before anything is allocated or waited for.
    init(maxFrameBytes: Int)

    /// Takes the next frame off the buffer.
    ///
    /// - Parameter buffer: the bytes that came and were not taken yet. Moved behind the frame where one is returned;
    ///   left as it is where one is not complete or an error is thrown (so that the error is thrown again).
    /// - Returns: the frame, or nil if more bytes are needed.
    /// - Throws: WireError if the bytes break the protocol; the connection cannot go on.
    mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> Frame?
}

/// One frame of a protocol.
package protocol WireFrame: Hashable, Sendable {
    /// How many bytes the frame takes on the wire, its header included.
    var encodedBytes: Int { get }

    /// How many frames of the protocol it stands for; 1 but where a decoder hands over several together.
    var frameCount: Int { get }

    /// Appends the frame, header and body.
    ///
    /// - Throws: WireError if the body is longer than the header can tell; then nothing was written.
    func write(into buffer: inout ByteBuffer) throws(WireError)
}

extension WireFrame {
    package var frameCount: Int { 1 }
}
