// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Reads packets of the native protocol from a client's WebSocket. Binary messages carry a stream of Delimited frames;
/// each text message carries one packet as JSON.
///
/// The output is one stream for a ``DelimitedFrameDecoder`` that takes text. Each frame of a text message is passed on
/// as it arrives, after a prefix with its length. So the decoder can refuse a message that is too long before all of it
/// is stored.
package struct WebSocketPackets: WebSocketReading {
    private var input = WebSocketInput(takesText: true)
    private var position = DelimitedPosition()
    private var isInText = false

    package init() {}

    package mutating func takeFurtherFrames() -> Int { input.takeFurtherFrames() }

    package mutating func take(
        from bytes: inout ByteBuffer,
        into data: inout ByteBuffer
    ) throws(WebSocketInput.Failure) -> WebSocketInput.Control? {
        while true {
            let start = data.writerIndex
            let next: Result<WebSocketInput.Event?, WebSocketInput.Failure>
            do throws(WebSocketInput.Failure) {
                next = .success(try input.next(from: &bytes, into: &data))
            } catch {
                next = .failure(error)
            }
            // The client itself must not send a prefix that marks text (``DelimitedPrefix``).
            if !isInText, !position.follow(data, from: start) {
                data.moveWriterIndex(to: start)
                throw .messageTooBig
            }
            switch try next.get() {
            case nil: return nil
            case .control(let control): return control
            case .frame(.binary, _, _): isInText = false
            case .frame(.text, let length, let isLast):
                isInText = true
                guard position.isBetweenFrames else { throw .protocolError }
                // A length that does not fit into 32 bits is clamped. The decoder refuses the clamped length, too.
                let told = UInt32(clamping: length)
                if told > 0 || isLast { DelimitedPrefix.writeText(told, isLast: isLast, into: &data) }
            }
        }
    }
}

/// The first WebSocket message in a gateway's output.
package struct WebSocketMessage: Sendable, Hashable {
    package var isText = false
    /// The number of bytes before the message, which are not sent.
    package var skippedBytes = 0
    /// The size of the message in bytes.
    package var bytes: Int

    /// Creates a binary message.
    package init(bytes: Int) { self.bytes = bytes }

    /// Creates the message for a Delimited frame. A binary message includes the frame's prefix; a text message does
    /// not.
    package init(delimited written: ByteBuffer) {
        guard let prefix = try? DelimitedPrefix.peek(written) else {
            bytes = written.readableBytes
            return
        }
        let length = Int(prefix.length & UInt64(UInt32.max))
        isText = prefix.length & DelimitedPrefix.text != 0
        skippedBytes = isText ? prefix.prefixBytes : 0
        bytes = isText ? length : prefix.prefixBytes + length
    }
}
