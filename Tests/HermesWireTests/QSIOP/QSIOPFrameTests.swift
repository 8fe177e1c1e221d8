// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@Suite("QSIOP frames")
struct QSIOPFrameTests {
    static let vectors = try? Vectors("qsiop")
    let vectors: Vectors

    init() throws {
        vectors = try Vectors("qsiop")
    }

    @Test(arguments: vectors?.good ?? [])
    func `every good vector, fed in every way, and written again`(_ vector: Vectors.Good) throws {
        let bytes = [UInt8](hex: vector.hex)
        let operation = QSIOPOperation(rawValue: try #require(vector.op))
        let frame = QSIOPFrame(operation, body: ByteBuffer(bytes: bytes.dropFirst(6)))
        expectFrame(bytes, from: QSIOPFrameDecoder(), is: frame)
        #expect(operation.isKnown)
        #expect(try frame.encoded() == bytes)

        let properties = try frame.properties()
        let expected = vector.props ?? [:]
        #expect(properties.pairs.count == expected.count)
        for (key, value) in expected { #expect(properties[key] == value) }
        // In a frame that is written from properties, every pair has a colon and a line feed, including the last pair.
        let written = QSIOPFrame(operation, properties)
        switch vector.name {
        case "report-user-no-trailing-lf": #expect(try written.encoded() == vectors.bytes("report-user"))
        case "key-only": #expect(written.body.bytes == Array("flag:\n".utf8))
        default: #expect(try written.encoded() == bytes)
        }
    }

    @Test
    func `all vectors are there`() {
        #expect(vectors.good.count == 7)
        #expect(vectors.bad.count == 2)
    }

    @Test
    func `text that is not UTF-8 is a frame, and an error only when it is parsed`() throws {
        let bytes = try vectors.bytes("bad-utf8")
        let frame = QSIOPFrame(.report, body: ByteBuffer(bytes: bytes.dropFirst(6)))
        expectFrame(bytes, from: QSIOPFrameDecoder(), is: frame)
        let error = #expect(throws: WireError.self) { try frame.properties() }
        #expect(error?.code == .badText)
    }

    @Test
    func `too many combining marks in a row are an error in a frame from a device, and none in one from a server`()
        throws
    {
        let marks = String(repeating: "\u{301}", count: StreamSafeText.maxRun + 1)
        let frame = QSIOPFrame(.push, ["body": marks])
        let error = #expect(throws: WireError.self) { try frame.deviceProperties() }
        #expect(error?.code == .badText)
        #expect(try frame.properties()["body"]?.utf8.count == marks.utf8.count)
    }

    @Test(
        arguments: [
            [0xC0, 0x80], [0xE4, 0xBD], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE4, 0x3A, 0xBD, 0xA0],
        ]
            as [[UInt8]]
    )
    func `no UTF-8 in key or value, whole or cut by a separator`(_ bad: [UInt8]) {
        for body in [bad, bad + [0x3A, 0x61], [0x61, 0x3A] + bad, [0x61, 0x0A] + bad + [0x0A]] {
            #expect(throws: WireError.self) { try QSIOPProperties(parsing: ByteBuffer(bytes: body)) }
        }
    }

    @Test
    func `another version is an error at its second byte`() throws {
        let good = try vectors.bytes("two-props")
        expectError(.badVersion, for: try vectors.bytes("version-0"), behind: good, from: QSIOPFrameDecoder())
        expectError(.badVersion, for: [0x47, 0x45], behind: good, from: QSIOPFrameDecoder())
    }

    @Test
    func `properties above the limit are an error as soon as the header is there`() throws {
        let header: [UInt8] = [0, 1, 0, 2, 4, 1]
        expectError(
            .frameTooLong,
            for: header,
            behind: try vectors.bytes("ping"),
            from: QSIOPFrameDecoder(maxFrameBytes: 1_024)
        )
    }

    @Test
    func `unknown operations are frames`() throws {
        let frame = QSIOPFrame(QSIOPOperation(rawValue: 77))
        expectFrame(try frame.encoded(), from: QSIOPFrameDecoder(), is: frame)
        #expect(!frame.operation.isKnown)
    }

    @Test
    func `properties that the header cannot tell are refused, and nothing is written`() {
        var buffer = ByteBuffer()
        let frame = QSIOPFrame(.push, ["body": String(repeating: "x", count: 65_530)])
        let error = #expect(throws: WireError.self) { try frame.write(into: &buffer) }
        #expect(error?.code == .frameTooLong)
        #expect(buffer.readableBytes == 0)
    }

    @Test
    func `nothing in a key or a value ends its line or its string`() throws {
        let frame = QSIOPFrame(.push, ["a\r\n\0:b": "one\rtwo\nthree\r\nfour\0five"])
        var bytes = ByteBuffer()
        try frame.write(into: &bytes)
        bytes.moveReaderIndex(forwardBy: 6)
        #expect(String(buffer: bytes) == "a____b:one two three  four five\n")
    }

    @Test
    func `properties are slices of what was read`() throws {
        var buffer = ByteBuffer(bytes: try vectors.bytes("two-props") + vectors.bytes("report-user"))
        var decoder = QSIOPFrameDecoder()
        for _ in 0..<2 {
            expectSlice(try #require(try decoder.next(from: &buffer)).body, of: buffer)
        }
    }

    @Test(arguments: [1, 2, 3])
    func `what is written is read again`(seed: UInt64) throws {
        try expectRoundTrip(through: QSIOPFrameDecoder(), seed: seed) { random in
            var properties = QSIOPProperties()
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                properties.append(random.text(0...6), random.text(0...30))
            }
            let frame = QSIOPFrame(QSIOPOperation(rawValue: UInt16.random(in: 0...9, using: &random)), properties)
            let parsed = try frame.properties()
            #expect(parsed == properties)
            return frame
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `the longest frame, byte by byte`() {
        expectPatience([0, 1, 0, 2, 0xFF, 0xFF] + [UInt8](repeating: 0x61, count: 65_535), from: QSIOPFrameDecoder())
    }
}
