// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
import NIOCore

/// The output of a decoder.
private struct Outcome<Frame: WireFrame>: Equatable {
    var frames: [Frame] = []
    var error: WireError?
    var consumedBytes = 0
}

/// Feeds a decoder the bytes in one piece and in random pieces, and stops the process if the outputs differ.
///
/// - Parameters:
///   - input: the bytes of an untrusted peer.
///   - limit: the longest body that the decoder accepts, in bytes.
///   - isExact: whether writing a frame gives the bytes it was read from.
///   - check: checks each frame.
package func fuzz<Decoder: FrameDecoder>(
    _ input: UnsafeRawBufferPointer,
    with type: Decoder.Type,
    limit: Int,
    isExact: Bool,
    check: (Decoder.Frame) -> Void
) {
    let whole = decode(input, with: Decoder(maxFrameBytes: limit)) { input.count }
    var random = SplitMix64(seed: input)
    let pieces = decode(input, with: Decoder(maxFrameBytes: limit)) { random.pieceBytes() }
    invariant(whole == pieces, "the pieces in which bytes come make a difference")

    invariant(whole.consumedBytes <= input.count, "more was taken than came")
    if whole.error == nil {
        invariant(input.count - whole.consumedBytes < limit + 16, "more waits than one frame can take")
    }
    var written = ByteBuffer()
    for frame in whole.frames {
        let before = written.readableBytes
        do {
            try frame.write(into: &written)
        } catch {
            broken("a frame that was read cannot be written: \(error)")
        }
        invariant(written.readableBytes - before == frame.encodedBytes, "encodedBytes is wrong")
        check(frame)
    }
    invariant(written.readableBytes <= whole.consumedBytes, "more is written than was read")
    if isExact {
        invariant(written.readableBytesView.elementsEqual(input.prefix(whole.consumedBytes)), "not the same bytes")
    } else {
        var again = Outcome<Decoder.Frame>()
        written.withUnsafeReadableBytes { bytes in
            again = decode(bytes, with: Decoder(maxFrameBytes: limit)) { bytes.count }
        }
        invariant(again.frames == whole.frames && again.error == nil, "what is written is not read again")
    }
}

/// Feeds a decoder until the bytes end or it refuses them.
private func decode<Decoder: FrameDecoder>(
    _ input: UnsafeRawBufferPointer,
    with decoder: Decoder,
    pieceBytes: () -> Int
) -> Outcome<Decoder.Frame> {
    var decoder = decoder
    var outcome = Outcome<Decoder.Frame>()
    var buffer = ByteBuffer()
    var rest = input[...]
    while !rest.isEmpty, outcome.error == nil {
        let piece = rest.prefix(max(1, pieceBytes()))
        rest = rest.dropFirst(piece.count)
        buffer.writeBytes(piece)
        do {
            while let frame = try decoder.next(from: &buffer) { outcome.frames.append(frame) }
        } catch {
            outcome.error = error
        }
    }
    outcome.consumedBytes = input.count - rest.count - buffer.readableBytes
    return outcome
}

/// Random numbers that depend only on the input, so that a finding is reproducible.
private struct SplitMix64 {
    private var state: UInt64

    init(seed: UnsafeRawBufferPointer) {
        // FNV-1a.
        state = seed.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The length of the next piece, in bytes: mostly short, often 1.
    mutating func pieceBytes() -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        return 1 << Int(mixed % 8)
    }
}
