// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer: a client's WebSocket at `/ws`, with binary and text messages.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWebSocket(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    let whole = read(input, step: max(1, count))
    let pieces = read(input, step: 3)
    // A failure may come before or after the frames of the same read.
    if whole.isGood, pieces.isGood {
        invariant(whole.frames == pieces.frames, "the pieces in which bytes come make a difference")
    }
    for frame in whole.frames {
        invariant((1...1_024).contains(frame.body.readableBytes), "a frame is empty or too long")
        if frame.isJSON {
            fuzz(json: frame.body, as: Hermes_V1_Packet.self)
        } else {
            fuzz(frame.body, as: Hermes_V1_Packet.self)
        }
    }
    return 0
}

private func read(_ input: UnsafeRawBufferPointer, step: Int) -> (frames: [DelimitedFrame], isGood: Bool) {
    var reader = WebSocketPackets()
    var decoder = DelimitedFrameDecoder(maxFrameBytes: 1_024, takesText: true)
    var frames: [DelimitedFrame] = []
    var (bytes, data) = (ByteBuffer(), ByteBuffer())
    for start in stride(from: 0, to: input.count, by: step) {
        bytes.writeBytes(input[start..<min(start + step, input.count)])
        do {
            while try reader.take(from: &bytes, into: &data) != nil {}
            while let frame = try decoder.next(from: &data) { frames.append(frame) }
        } catch {
            return (frames, false)
        }
        invariant(bytes.readableBytes < 14 + 125, "the reader keeps payload")
        if step == 3 { invariant(data.readableBytes <= 2 * 1_024 + 16, "more waits than a message can take") }
    }
    return (frames, true)
}
