// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

/// The receiving half of a connection, which turns bytes into frames.
struct Receiver<Decoder: FrameDecoder> {
    private var decoder: Decoder
    private(set) var buffer = ByteBuffer()
    private(set) var frames: [Decoder.Frame] = []
    private(set) var error: WireError?

    init(_ decoder: Decoder) {
        self.decoder = decoder
    }

    mutating func receive(_ bytes: some Sequence<UInt8>) {
        guard error == nil else { return }
        buffer.writeBytes(bytes)
        do {
            while let frame = try decoder.next(from: &buffer) { frames.append(frame) }
        } catch {
            self.error = error
            // An error is permanent. The next call throws it again.
            #expect(throws: WireError.self) { try decoder.next(from: &buffer) }
        }
    }
}

/// Feeds the bytes of one frame in all ways in which a network may deliver them, and expects the frame each time.
func expectFrame<Decoder: FrameDecoder>(
    _ bytes: [UInt8],
    from decoder: @autoclosure () -> Decoder,
    is frame: Decoder.Frame,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    // All bytes arrive at once.
    var whole = Receiver(decoder())
    whole.receive(bytes)
    #expect(whole.frames == [frame], sourceLocation: sourceLocation)
    #expect(whole.buffer.readableBytes == 0, sourceLocation: sourceLocation)

    // The bytes arrive one at a time. There is no frame before the last byte.
    var drip = Receiver(decoder())
    for byte in bytes.dropLast() { drip.receive(CollectionOfOne(byte)) }
    #expect(drip.frames.isEmpty && drip.error == nil, sourceLocation: sourceLocation)
    drip.receive(bytes.suffix(1))
    #expect(drip.frames == [frame], sourceLocation: sourceLocation)

    // The frame is cut at every position. A long frame is cut only near its ends.
    let cuts = bytes.count <= 1_000 ? Array(0...bytes.count) : Array(0...20) + Array(bytes.count - 20...bytes.count)
    for cut in cuts {
        var halves = Receiver(decoder())
        halves.receive(bytes[..<cut])
        halves.receive(bytes[cut...])
        #expect(halves.frames == [frame], "cut at \(cut)", sourceLocation: sourceLocation)
    }

    // A thousand frames arrive together, in pieces that do not match the frames.
    guard bytes.count <= 1_000 else { return }
    var glued = Receiver(decoder())
    let thousand = [UInt8]((0..<1_000).map { _ in bytes }.joined())
    for start in stride(from: 0, to: thousand.count, by: 1_021) {
        glued.receive(thousand[start..<min(start + 1_021, thousand.count)])
    }
    #expect(glued.frames.count == 1_000, sourceLocation: sourceLocation)
    #expect(glued.frames.allSatisfy { $0 == frame }, sourceLocation: sourceLocation)
    #expect(glued.buffer.readableBytes == 0, sourceLocation: sourceLocation)
}

/// Feeds bytes that break the protocol, alone and after a thousand valid frames, and expects the error each time.
func expectError<Decoder: FrameDecoder>(
    _ code: WireError.Code,
    for bytes: [UInt8],
    behind good: [UInt8],
    from decoder: @autoclosure () -> Decoder,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    var whole = Receiver(decoder())
    whole.receive(bytes)
    #expect(whole.error?.code == code, sourceLocation: sourceLocation)
    #expect(whole.frames.isEmpty, sourceLocation: sourceLocation)

    var drip = Receiver(decoder())
    for byte in bytes { drip.receive(CollectionOfOne(byte)) }
    #expect(drip.error?.code == code, sourceLocation: sourceLocation)
    #expect(drip.frames.isEmpty, sourceLocation: sourceLocation)

    for cut in 0...bytes.count {
        var halves = Receiver(decoder())
        halves.receive(bytes[..<cut])
        halves.receive(bytes[cut...])
        #expect(halves.error?.code == code, "cut at \(cut)", sourceLocation: sourceLocation)
    }

    var glued = Receiver(decoder())
    glued.receive((0..<1_000).map { _ in good }.joined())
    glued.receive(bytes)
    #expect(glued.frames.count == 1_000, sourceLocation: sourceLocation)
    #expect(glued.error?.code == code, sourceLocation: sourceLocation)
}

/// Writes random frames one after the other, feeds them in random pieces, and expects the same frames.
func expectRoundTrip<Decoder: FrameDecoder>(
    through decoder: @autoclosure () -> Decoder,
    seed: UInt64,
    frame: (inout SeededGenerator) throws -> Decoder.Frame,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<50 {
        let frames = try (0..<Int.random(in: 1...40, using: &random)).map { _ in try frame(&random) }
        var stream = ByteBuffer()
        for frame in frames {
            let before = stream.readableBytes
            try frame.write(into: &stream)
            #expect(stream.readableBytes - before == frame.encodedBytes, sourceLocation: sourceLocation)
        }
        var receiver = Receiver(decoder())
        let bytes = stream.bytes
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...200, using: &random))
            receiver.receive(bytes[start..<end])
            start = end
        }
        #expect(receiver.frames == frames, "seed \(seed)", sourceLocation: sourceLocation)
        #expect(receiver.error == nil, sourceLocation: sourceLocation)
    }
}

/// Feeds one long frame byte by byte.
///
/// A decoder that examines all bytes again at each call would examine 500,000,000,000 bytes for a frame of a million
/// bytes. Such a test does not end, so its time limit makes it fail.
func expectPatience<Decoder: FrameDecoder>(
    _ bytes: [UInt8],
    from decoder: Decoder,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    var decoder = decoder
    var buffer = ByteBuffer()
    var completedAt: [Int] = []
    for (index, byte) in bytes.enumerated() {
        buffer.writeInteger(byte)
        if (try? decoder.next(from: &buffer)) != nil { completedAt.append(index) }
    }
    #expect(completedAt == [bytes.count - 1], sourceLocation: sourceLocation)
}

/// Expects a body to be a slice of the connection's read buffer, not a copy.
func expectSlice(_ body: ByteBuffer, of buffer: ByteBuffer, sourceLocation: SourceLocation = #_sourceLocation) {
    let bodyStart = body.withUnsafeReadableBytes { $0.baseAddress.map { UInt(bitPattern: $0) } ?? 0 }
    let whole = buffer.withVeryUnsafeBytes { bytes in
        bytes.baseAddress.map { UInt(bitPattern: $0)..<UInt(bitPattern: $0) + UInt(bytes.count) } ?? 0..<0
    }
    #expect(whole.contains(bodyStart), sourceLocation: sourceLocation)
}
