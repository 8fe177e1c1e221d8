// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

/// Text and binary messages of the native protocol.
@Suite struct WebSocketPacketsTests {
    private static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    /// Makes a masked frame, like a client's frame.
    private static func frame(_ first: UInt8, _ payload: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? payload.count
        var bytes = [first]
        switch length {
        case ..<126: bytes.append(0x80 | UInt8(length))
        case ..<65_536: bytes += [0x80 | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        default: bytes += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        }
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    private struct Outcome: Equatable {
        var frames: [DelimitedFrame] = []
        var controls = 0
        var failure: WebSocketInput.Failure?
        var error: WireError.Code?
        /// The largest number of bytes that waited for the end of a frame.
        var mostWaiting = 0
    }

    private func run(_ bytes: [UInt8], step: Int, limit: Int = 1_000) -> Outcome {
        var input = WebSocketPackets()
        var decoder = DelimitedFrameDecoder(maxFrameBytes: limit, takesText: true)
        var outcome = Outcome()
        var buffer = ByteBuffer()
        var data = ByteBuffer()
        for start in stride(from: 0, to: bytes.count, by: step) {
            buffer.writeBytes(bytes[start..<min(start + step, bytes.count)])
            do throws(WebSocketInput.Failure) {
                while try input.take(from: &buffer, into: &data) != nil { outcome.controls += 1 }
            } catch {
                outcome.failure = error
            }
            do throws(WireError) {
                while let frame = try decoder.next(from: &data) { outcome.frames.append(frame) }
            } catch {
                outcome.error = error.code
            }
            outcome.mostWaiting = max(outcome.mostWaiting, data.readableBytes)
            guard outcome.failure == nil, outcome.error == nil else { break }
        }
        return outcome
    }

    private static func text(_ body: String) -> DelimitedFrame {
        DelimitedFrame(body: ByteBuffer(string: body), isJSON: true)
    }

    @Test(arguments: [1, 2, 3, 7, 1_000_000])
    func `a text message is a frame, in however many pieces it comes`(step: Int) {
        let letters = Array("abcdefghij".utf8)
        let bytes =
            Self.frame(0x81, letters) + Self.frame(0x89, [1])
            // A text is in three frames, with control frames and an empty frame between them.
            + Self.frame(0x01, Array(letters[..<4])) + Self.frame(0x89, []) + Self.frame(0x00, [])
            + Self.frame(0x00, Array(letters[4..<9])) + Self.frame(0x8A, []) + Self.frame(0x80, Array(letters[9...]))
            // Empty messages are skipped, like empty frames.
            + Self.frame(0x81, []) + Self.frame(0x01, []) + Self.frame(0x80, [])
            // The last frame of a message has no bytes.
            + Self.frame(0x01, Array("xyz".utf8)) + Self.frame(0x80, [])
            // A frame of the binary protocol is cut over two messages. Another text follows.
            + Self.frame(0x82, [2, 7]) + Self.frame(0x82, [8, 0]) + Self.frame(0x81, Array("last".utf8))
        let outcome = run(bytes, step: step)
        #expect(outcome.failure == nil && outcome.error == nil)
        #expect(outcome.controls == 3)
        let binary = DelimitedFrame(body: ByteBuffer(bytes: [7, 8]))
        #expect(
            outcome.frames
                == [Self.text("abcdefghij"), Self.text("abcdefghij"), Self.text("xyz"), binary, Self.text("last")]
        )
    }

    @Test(arguments: [1, 1_000_000])
    func `a text within a binary frame breaks the protocol`(step: Int) {
        for start: [UInt8] in [[2], [2, 7], [0x80]] {
            let outcome = run(Self.frame(0x82, start) + Self.frame(0x81, Array("{}".utf8)), step: step)
            #expect(outcome.failure == .protocolError)
            #expect(outcome.frames == [])
        }
        // A text inside a message and a binary message inside a text also break the protocol.
        for bytes in [
            Self.frame(0x02, [1]) + Self.frame(0x81, [2]), Self.frame(0x01, [1]) + Self.frame(0x82, [2]),
            Self.frame(0x01, [1]) + Self.frame(0x01, [2]), Self.frame(0x81, [1]) + Self.frame(0x80, [2]),
        ] {
            #expect(run(bytes, step: step).failure == .protocolError)
        }
    }

    @Test(arguments: [1, 1_000_000])
    func `no client can pass off a binary message as text`(step: Int) {
        // The prefixes are the marks of a text of one byte, the marks of a piece of a text, and lengths that no frame
        // can have.
        for prefix: [UInt8] in [
            [0x81, 0x80, 0x80, 0x80, 0x10], [0x81, 0x80, 0x80, 0x80, 0x30], [0x81, 0x80, 0x80, 0x80, 0x20],
            [0xFF, 0xFF, 0xFF, 0xFF, 0x7F], [0x80, 0x80, 0x80, 0x80, 0x80],
        ] {
            let outcome = run(Self.frame(0x82, prefix + [0x7B, 0x7D]), step: step)
            #expect(outcome.failure == .messageTooBig)
            #expect(outcome.frames == [])
        }
        // For a decoder without text messages, such a length is too long.
        var decoder = DelimitedFrameDecoder(maxFrameBytes: 1_000)
        var buffer = ByteBuffer(bytes: [0x81, 0x80, 0x80, 0x80, 0x10, 0x7B])
        let error = #expect(throws: WireError.self) { try decoder.next(from: &buffer) }
        #expect(error?.code == .frameTooLong)
    }

    @Test(arguments: [1, 64, 1_000_000])
    func `a text that is too long is refused before it is there`(step: Int) {
        for length in [1_001, 65_536, Int(UInt32.max) + 1, Int(Int64.max)] {
            let outcome = run(Self.frame(0x81, [0x7B], length: length), step: step)
            #expect(outcome.error == .frameTooLong)
        }
        #expect(run(Self.frame(0x81, [UInt8](repeating: 1, count: 1_000)), step: step).frames.count == 1)
        // A text in frames of 100 bytes is refused at the eleventh frame.
        let hundred = [UInt8](repeating: 1, count: 100)
        let pieces = Self.frame(0x01, hundred) + (1...10).flatMap { _ in Self.frame(0x00, hundred) }
        let outcome = run(pieces, step: step)
        #expect(outcome.error == .frameTooLong)
        #expect(
            run(Self.frame(0x01, hundred) + (1...9).flatMap { _ in Self.frame(0x00, hundred) }, step: step).error == nil
        )
    }

    @Test(arguments: [1, 7, 1_000_000])
    func `frames of a byte hold no more than twice the limit`(step: Int) {
        let bytes = Self.frame(0x01, [1]) + (0..<999).flatMap { _ in Self.frame(0x00, [1]) } + Self.frame(0x80, [])
        let outcome = run(bytes, step: step)
        #expect(outcome.error == .frameTooLong)
        if step < 10 { #expect(outcome.mostWaiting < 2_000 + 32) }
        let fewer = Self.frame(0x01, [1]) + (0..<300).flatMap { _ in Self.frame(0x00, [1]) } + Self.frame(0x80, [1])
        #expect(
            run(fewer, step: step).frames == [DelimitedFrame(body: ByteBuffer(repeating: 1, count: 302), isJSON: true)]
        )
    }

    @Test func `random frames give the same in any pieces, and never trap`() {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let first: UInt8 = [0x81, 0x01, 0x00, 0x80, 0x82, 0x02, 0x89].randomElement(using: &random) ?? 0x81
                let payload = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                    UInt8.random(in: 0...3, using: &random) * 0x41 & 0xBF
                }
                bytes += Self.frame(first, payload)
            }
            var whole = run(bytes, step: bytes.count, limit: 30)
            var pieces = run(bytes, step: Int.random(in: 1...9, using: &random), limit: 30)
            (whole.mostWaiting, pieces.mostWaiting) = (0, 0)
            // A failure may be reported together with the frames before it, or after them.
            if whole.failure == nil, whole.error == nil { #expect(whole == pieces) }
        }
    }

    @Test func `the server's messages`() throws {
        var packet = Hermes_V1_Packet()
        packet.id = 9_007_199_254_740_993
        packet.pong.clientTimeMs = 5
        var written = ByteBuffer()
        try DelimitedFrame.write(json: packet, into: &written)
        let json = WebSocketMessage(delimited: written)
        #expect(json.isText)
        #expect(json.skippedBytes + json.bytes == written.readableBytes)
        written.moveReaderIndex(forwardBy: json.skippedBytes)
        #expect(String(buffer: written) == #"{"id":"9007199254740993","pong":{"clientTimeMs":"5"}}"#)

        var binary = ByteBuffer()
        try DelimitedFrame.write(packet, into: &binary)
        let message = WebSocketMessage(delimited: binary)
        #expect(!message.isText && message.skippedBytes == 0 && message.bytes == binary.readableBytes)
        for (isText, first) in [(true, 0x81), (false, 0x82)] {
            var header = ByteBuffer()
            WebSocketOutput.writeHeader(of: 1, isText: isText, into: &header)
            #expect(header.bytes == [UInt8(first), 1])
        }
    }

    @Test func `frames of both kinds survive being written and read`() throws {
        for seed: UInt64 in [1, 2] {
            try expectRoundTrip(
                through: DelimitedFrameDecoder(maxFrameBytes: 300, takesText: true),
                seed: seed
            ) { random in
                DelimitedFrame(body: random.body(1...300), isJSON: Bool.random(using: &random))
            }
        }
    }
}
