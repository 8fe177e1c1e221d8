// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@Suite struct WebSocketInputTests {
    private static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    /// Makes a masked frame, like a client's frame.
    private static func frame(
        _ first: UInt8,
        _ payload: [UInt8],
        length: Int? = nil,
        form: Int? = nil,
        key: [UInt8] = key
    ) -> [UInt8] {
        let length = length ?? payload.count
        let form = form ?? (length < 126 ? 7 : length < 65_536 ? 16 : 64)
        var bytes = [first]
        switch form {
        case 7: bytes.append(0x80 | UInt8(length))
        case 16: bytes += [0x80 | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        default: bytes += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        }
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    private func run(
        _ bytes: [UInt8],
        step: Int
    ) throws -> (data: [UInt8], controls: [WebSocketInput.Control], unread: Int) {
        var input = WebSocketInput()
        var buffer = ByteBuffer()
        var data = ByteBuffer()
        var controls: [WebSocketInput.Control] = []
        for start in stride(from: 0, to: bytes.count, by: step) {
            buffer.writeBytes(bytes[start..<min(start + step, bytes.count)])
            while let control = try input.take(from: &buffer, into: &data) { controls.append(control) }
            #expect(buffer.readableBytes < 14 + 125, "no payload is kept")
        }
        return (data.bytes, controls, buffer.readableBytes)
    }

    @Test func `the example of the standard`() throws {
        // This is the masked "Hello" of RFC 6455, section 5.7, but as a binary message.
        let bytes: [UInt8] = [0x82, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(try run(bytes, step: 100).data == Array("Hello".utf8))
    }

    @Test func `frames that no message needs are counted`() throws {
        var input = WebSocketInput()
        var data = ByteBuffer()
        // The messages are a whole message, a message in three parts of one byte with a ping between them, and an empty
        // message.
        for (frame, count) in [
            ([0x82, 0x81], 0), ([0x02, 0x81], 1), ([0x89, 0x80], 1), ([0x00, 0x81], 1), ([0x80, 0x81], 0),
            ([0x82, 0x80], 1),
        ] as [([UInt8], Int)] {
            var bytes = ByteBuffer(bytes: frame + [1, 2, 3, 4] + (frame[1] == 0x81 ? [9] : []))
            while try input.take(from: &bytes, into: &data) != nil {}
            let found = input.takeFurtherFrames()
            #expect(found == count, "\(frame)")
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1_000_000])
    func `payload comes out as it went in, whatever the cuts`(step: Int) throws {
        var stream: [UInt8] = []
        var bytes: [UInt8] = []
        for length in [0, 1, 2, 7, 8, 9, 125, 126, 127, 1_000, 65_535, 65_536, 70_001] {
            let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ length) }
            stream += payload
            // A message in three frames, with a ping and a pong between them.
            let third = length / 3
            bytes += Self.frame(0x02, Array(payload[..<third]))
            bytes += Self.frame(0x89, [UInt8](repeating: 7, count: length % 126))
            bytes += Self.frame(0x00, Array(payload[third..<(2 * third)]), key: [0, 1, 0xFF, 0x80])
            bytes += Self.frame(0x8A, [])
            bytes += Self.frame(0x80, Array(payload[(2 * third)...]))
        }
        bytes += Self.frame(0x88, [0x03, 0xE8, 0x62])
        let (data, controls, unread) = try run(bytes, step: step)
        #expect(data == stream)
        #expect(unread == 0)
        #expect(controls.count == 27)
        #expect(controls[0] == .ping(ByteBuffer()))
        #expect(controls[8] == .ping(ByteBuffer(bytes: [UInt8](repeating: 7, count: 8))))
        #expect(controls.last == .close(1000))
    }

    @Test(arguments: [
        ([0x81, 0x80], WebSocketInput.Failure.unsupportedData), ([0x01, 0x80], .unsupportedData),
        ([0x82, 0x00], .protocolError), ([0x82, 0x05], .protocolError), ([0x89, 0x00], .protocolError),
        ([0xC2, 0x80], .protocolError), ([0xA2], .protocolError), ([0x92], .protocolError),
        ([0x83], .protocolError), ([0x87], .protocolError), ([0x8B], .protocolError), ([0x8F], .protocolError),
        ([0x80], .protocolError), ([0x00], .protocolError), ([0x09], .protocolError), ([0x08], .protocolError),
        ([0x89, 0xFE, 0, 126], .protocolError), ([0x88, 0xFF], .protocolError),
        (frame(0x82, [], length: 125, form: 16), .protocolError),
        (frame(0x82, [], length: 65_535, form: 64), .protocolError),
        ([0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], .protocolError),
        (frame(0x02, [1]) + frame(0x82, [2]), .protocolError), (frame(0x82, [1]) + frame(0x80, [2]), .protocolError),
        (frame(0x88, [3]), .protocolError), (frame(0x88, [0, 0]), .protocolError),
        (frame(0x88, [0x03, 0xED]), .protocolError), (frame(0x88, [0x03, 0xF7]), .protocolError),
        (frame(0x88, [0xFF, 0xFF]), .protocolError), (frame(0x88, [0x03, 0xE8, 0xC3, 0x28]), .invalidText),
    ])
    func `what the standard forbids ends the connection as soon as it is seen`(
        bytes: [UInt8],
        failure: WebSocketInput.Failure
    ) {
        for step in [1, 100] { #expect(throws: failure) { try run(bytes, step: step) } }
    }

    @Test func `a frame of any length is taken without being kept`() throws {
        let bytes = Self.frame(0x82, [1, 2, 3], length: Int(Int64.max), form: 64)
        #expect(try run(bytes, step: 1).data == [1, 2, 3])
    }

    @Test func `random bytes never trap`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            _ = try? run([0x82] + bytes, step: Int.random(in: 1...50, using: &random))
        }
    }

    @Test(arguments: [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)])
    func `headers of the server's frames`(length: Int, size: Int) throws {
        var bytes = ByteBuffer()
        WebSocketOutput.writeHeader(of: length, into: &bytes)
        #expect(bytes.readableBytes == size)
        #expect(bytes.bytes.first == 0x82)
        #expect(bytes.bytes[1] & 0x80 == 0, "not masked")
    }
}
