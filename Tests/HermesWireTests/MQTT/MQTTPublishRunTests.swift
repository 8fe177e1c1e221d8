// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

/// A run contains the same packets as the stream.
@Suite struct MQTTPublishRunTests {
    private func frames(_ input: MQTTInput) -> [MQTTFrame] {
        switch input {
        case .publish(let frame): return [frame.frame]
        case .publishes(let run): return (0..<run.count).map { run.frame($0).frame }
        case .acknowledgement(let type, let packetID):
            let flags: UInt8 = type == .pubrel ? 0b0010 : 0
            return [MQTTFrame(header: type.rawValue << 4 | flags, body: ByteBuffer(integer: packetID))]
        case .other(let frame): return [frame]
        }
    }

    private func bytes(_ topics: [String], _ qos: MQTTQoS, _ payloads: [Int]) throws -> ByteBuffer {
        var bytes = ByteBuffer()
        for (number, topic) in topics.enumerated() {
            let packet = MQTTPublish(
                topic: topic,
                payload: ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: payloads[number]),
                qos: qos,
                packetID: qos == .atMostOnce ? nil : UInt16(truncatingIfNeeded: number + 1)
            )
            try MQTTPacket.publish(packet).write(into: &bytes, version: .v311)
        }
        return bytes
    }

    @Test(arguments: MQTTQoS.allCases)
    func `packets to one topic come as one run, with all that lies in them`(_ qos: MQTTQoS) throws {
        var input = try bytes(["a/b", "a/b", "a/b"], qos, [0, 300, 7])
        let whole = input.readableBytes
        var decoder = MQTTInputDecoder(maxFrameBytes: 1_000)
        guard case .publishes(let run)? = try decoder.next(from: &input) else {
            Issue.record("no run")
            return
        }
        #expect(run.count == 3 && run.qos == qos && run.topicBytes == 3 && run.bytes.readableBytes == whole)
        #expect(MQTTInput.publishes(run).frameCount == 3 && MQTTInput.publishes(run).encodedBytes == whole)
        let skipped = qos == .atMostOnce ? 0 : 2
        #expect(run.bodies.map { $0.count - skipped } == [0, 300, 7])
        #expect(input.readableBytes == 0)
    }

    @Test(arguments: MQTTQoS.allCases)
    func `a part of a run has the same packets`(_ qos: MQTTQoS) throws {
        var input = try bytes(Array(repeating: "a/b", count: 5), qos, [0, 300, 7, 1, 200])
        var decoder = MQTTInputDecoder(maxFrameBytes: 1_000)
        guard case .publishes(let run)? = try decoder.next(from: &input) else {
            Issue.record("no run")
            return
        }
        let all = frames(.publishes(run))
        for start in 0..<5 {
            for end in start + 1...5 {
                let part = run.part(start..<end)
                #expect(part.count == end - start && part.qos == qos && part.topicBytes == 3)
                #expect(frames(.publishes(part)) == Array(all[start..<end]))
                #expect(part.bytes.readableBytes == all[start..<end].reduce(0) { $0 + $1.encodedBytes })
                let name = part.bytes.getString(at: part.bytes.readerIndex + part.topicStart, length: 3)
                #expect(name == "a/b")
            }
        }
    }

    @Test(arguments: ["hermes/v1/up", "hermes/v1/up/json", "hermes/"])
    func `what is for the server itself comes one by one, for it may take its time`(_ topic: String) throws {
        for qos in MQTTQoS.allCases {
            var input = try bytes([topic, topic, topic], qos, [1, 2, 3])
            let whole = input
            var decoder = MQTTInputDecoder(maxFrameBytes: 1_000)
            var found = ByteBuffer()
            for _ in 0..<3 {
                guard case .publish(let frame)? = try decoder.next(from: &input) else {
                    Issue.record("no packet of its own")
                    return
                }
                found.writeImmutableBuffer(frame.bytes)
            }
            #expect(found == whole && input.readableBytes == 0)
        }
    }

    @Test(arguments: [[1, 2], [1, 1, 1], [2, 1]])
    func `a packet whose length takes too many bytes is in no run`(_ counts: [Int]) throws {
        let long = counts == [1, 2] ? 0 : counts == [1, 1, 1] ? 1 : 2
        var input = ByteBuffer()
        for number in 0..<3 {
            let header: [UInt8] = number == long ? [0x30, 0x84, 0x00] : [0x30, 0x04]
            input.writeBytes(header + [0, 1, 0x61, UInt8(number)])
        }
        var decoder = MQTTInputDecoder(maxFrameBytes: 100)
        var found: [MQTTInput] = []
        while let next = try decoder.next(from: &input) { found.append(next) }
        #expect(found.map(\.frameCount) == counts)
        let bodies = found.flatMap(frames).map(\.body)
        #expect(bodies == (0..<3).map { ByteBuffer(bytes: [0, 1, 0x61, $0]) })
    }

    @Test func `another topic, another QoS, a retained and a repeated packet end a run`() throws {
        for other: (UInt8, String) in [(0x30, "b"), (0x32, "a"), (0x31, "a"), (0x3a, "a")] {
            var input = try bytes(["a", "a"], .atMostOnce, [1, 1])
            let body = ByteBuffer(bytes: [0, UInt8(other.1.utf8.count)] + Array(other.1.utf8) + [0, 9, 1])
            try MQTTFrame(header: other.0, body: body).write(into: &input)
            var decoder = MQTTInputDecoder(maxFrameBytes: 100)
            guard case .publishes(let run)? = try decoder.next(from: &input) else {
                Issue.record("no run")
                return
            }
            #expect(run.count == 2)
            guard case .publish(let frame)? = try decoder.next(from: &input) else {
                Issue.record("no packet of its own")
                return
            }
            #expect(frame.frame.header == other.0)
        }
    }

    @Test func `a packet that is too short for its topic or identifier is in no run`() throws {
        for short in ["30 02 00 01", "32 04 00 01 61 00", "30 00", "30 02 00 00"] {
            var input = ByteBuffer()
            let packet = try ByteBuffer(plainHexEncodedBytes: short.filter { !$0.isWhitespace })
            for _ in 0..<3 { input.writeImmutableBuffer(packet) }
            var decoder = MQTTInputDecoder(maxFrameBytes: 100)
            for _ in 0..<3 {
                guard case .publish(let frame)? = try decoder.next(from: &input) else {
                    Issue.record("\(short) came in a run, or not at all")
                    return
                }
                #expect(frame.bytes == packet)
            }
        }
    }

    @Test func `a run is as long as is looked at in one go, and no longer`() throws {
        let count = 1_500
        var input = try bytes(Array(repeating: "t", count: count), .atMostOnce, Array(repeating: 3, count: count))
        var decoder = MQTTInputDecoder(maxFrameBytes: 100)
        var sizes: [Int] = []
        while let next = try decoder.next(from: &input) { sizes.append(next.frameCount) }
        #expect(sizes.reduce(0, +) == count && sizes.count == 2 && sizes[0] <= 1_026)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func `whatever comes, in whatever pieces, is what the frame decoder finds`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            var input = ByteBuffer()
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                if Int.random(in: 0..<8, using: &random) == 0 {
                    let type = MQTTPacketType.allCases.randomElement(using: &random) ?? .pingreq
                    guard type != .auth else { continue }
                    try random.packet(type, .v311).write(into: &input, version: .v311)
                } else {
                    let qos = MQTTQoS(rawValue: UInt8.random(in: 0..<2, using: &random)) ?? .atMostOnce
                    let topic = Int.random(in: 0..<4, using: &random) == 0 ? "other" : "topic"
                    input.writeImmutableBuffer(
                        try bytes([topic], qos, [Int.random(in: 0..<200, using: &random)])
                    )
                }
            }
            // Sometimes a byte is changed.
            if Bool.random(using: &random), input.readableBytes > 0 {
                let index = Int.random(in: 0..<input.readableBytes, using: &random)
                input.setInteger(UInt8.random(in: 0 ... .max, using: &random), at: input.readerIndex + index)
            }
            let (expected, error) = expectation(input)
            var decoder = MQTTInputDecoder(maxFrameBytes: 10_000)
            var found: [MQTTFrame] = []
            var unread = ByteBuffer()
            var failure: WireError?
            while input.readableBytes > 0, failure == nil {
                let length = min(input.readableBytes, Int.random(in: 1...400, using: &random))
                unread.writeImmutableBuffer(input.readSlice(length: length) ?? ByteBuffer())
                do throws(WireError) {
                    while let next = try decoder.next(from: &unread) { found += frames(next) }
                } catch {
                    failure = error
                }
            }
            #expect(found == expected)
            #expect(failure == error)
        }
    }

    private func expectation(_ input: ByteBuffer) -> ([MQTTFrame], WireError?) {
        var input = input
        var decoder = MQTTFrameDecoder(maxFrameBytes: 10_000)
        var found: [MQTTFrame] = []
        do throws(WireError) {
            while let frame = try decoder.next(from: &input) { found.append(frame) }
            return (found, nil)
        } catch {
            return (found, error)
        }
    }
}
