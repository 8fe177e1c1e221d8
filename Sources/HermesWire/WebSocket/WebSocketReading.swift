// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Turns a client's WebSocket frames into the bytes of the protocol that they carry.
package protocol WebSocketReading: Sendable {
    /// Reads until a control frame arrives or the bytes run out.
    ///
    /// - Parameters:
    ///   - bytes: the received bytes. An incomplete header or control frame stays in the buffer.
    ///   - data: gets the protocol's bytes.
    /// - Returns: the control frame, after which the buffer may hold further frames; nil if more bytes are needed.
    /// - Throws: an error that ends the connection. The bytes that were appended to `data` before the error are valid.
    mutating func take(
        from bytes: inout ByteBuffer,
        into data: inout ByteBuffer
    ) throws(WebSocketInput.Failure) -> WebSocketInput.Control?

    /// Returns the number of extra frames since the last call: empty frames, control frames, and all frames of a
    /// message except its last, because a message needs only one frame.
    mutating func takeFurtherFrames() -> Int
}
