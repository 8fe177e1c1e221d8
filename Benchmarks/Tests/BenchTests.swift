// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesWire
import NIOCore
import Testing

@testable import HermesBench

@Suite struct BenchTests {
    private static func scan(_ dialect: BenchDialect, _ buffer: ByteBuffer) -> (Int, [BenchDialect.Incoming]) {
        var incoming: [BenchDialect.Incoming] = []
        let consumed = buffer.withUnsafeReadableBytes { dialect.scan($0) { incoming.append($0) } }
        return (consumed, incoming)
    }

    @Test(arguments: [0, 1, 63, 64, 140_737_488_355_328, 281_474_976_710_655] as [UInt64])
    func `stamps come back`(number: UInt64) throws {
        var buffer = ByteBuffer()
        BenchStamp.write(number, at: 1_234_567_890_123, bytes: 64, into: &buffer)
        #expect(buffer.readableBytes == 64)
        let text = try #require(buffer.getString(at: 0, length: 64))
        #expect(text.utf8.count == 64)
        let stamp = try #require(buffer.withUnsafeReadableBytes { BenchStamp.read($0) })
        #expect(stamp.number == number)
        #expect(stamp.nanoseconds == 1_234_567_890_123)
    }

    @Test(arguments: [18, 64, 200, 20_000], [UInt32(1), 127, 128, 2_147_483_647])
    func `messages written by hand are what protobuf reads`(bytes: Int, uid: UInt32) throws {
        var buffer = ByteBuffer()
        BenchDialect.delimited.writeSend(
            id: 300,
            to: uid,
            clientID: "run-1",
            number: 5,
            now: 9,
            textBytes: bytes,
            into: &buffer
        )
        var decoder = DelimitedFrameDecoder()
        let packet = try #require(try decoder.next(from: &buffer)).packet()
        #expect(buffer.readableBytes == 0)
        #expect(packet.id == 300)
        #expect(packet.send.to.uid == uid)
        #expect(packet.send.clientID == "run-1")
        #expect(packet.send.content.text.utf8.count == bytes)

        BenchDialect.impb.writeSend(
            id: 300,
            to: uid,
            clientID: "run-1",
            number: 5,
            now: 9,
            textBytes: bytes,
            into: &buffer
        )
        var impb = IMPBFrameDecoder()
        let frame = try #require(try impb.next(from: &buffer))
        #expect(buffer.readableBytes == 0)
        #expect(frame.seq == 300)
        let message = try IMPB_C2C_msg(wire: [UInt8](try IMPB_base_msg(wire: frame.body).body))
        #expect(message.to == Int32(clamping: uid))
        #expect(message.clientID == "run-1")
        #expect(try IMPB_msg_text_content(wire: [UInt8](message.content)).text.utf8.count == bytes)
    }

    @Test func `answers written by protobuf are read by hand, in one piece and in pieces`() throws {
        var buffer = ByteBuffer()
        var packet = Hermes_V1_Packet()
        packet.id = 20
        packet.result.receipt.messageID = "M"
        packet.result.receipt.inboxSeq = 900
        try DelimitedFrame.write(packet, into: &buffer)
        packet = Hermes_V1_Packet()
        packet.event.seq = 901
        var text = ByteBuffer()
        BenchStamp.write(77, at: 88, bytes: 64, into: &text)
        packet.event.message.content.text = String(buffer: text)
        try DelimitedFrame.write(packet, into: &buffer)
        packet = Hermes_V1_Packet()
        packet.id = 21
        packet.result.error.code = 3001
        packet.result.error.message = "slower"
        try DelimitedFrame.write(packet, into: &buffer)
        let (consumed, incoming) = Self.scan(.delimited, buffer)
        #expect(consumed == buffer.readableBytes)
        try #require(incoming.count == 3)
        guard case .receipt(20, 900) = incoming[0] else {
            Issue.record("\(incoming[0])")
            return
        }
        guard case .message(901, let stamp?) = incoming[1] else {
            Issue.record("\(incoming[1])")
            return
        }
        #expect(stamp.number == 77 && stamp.nanoseconds == 88)
        guard case .failure(21, "slower") = incoming[2] else {
            Issue.record("\(incoming[2])")
            return
        }
        for cut in 0..<buffer.readableBytes {
            let part = try #require(buffer.getSlice(at: 0, length: cut))
            #expect(Self.scan(.delimited, part).0 <= cut)
        }
    }

    @Test func `bytes at random do no harm`() {
        for dialect in [BenchDialect.delimited, .impb] {
            for _ in 0..<2000 {
                let bytes = (0..<Int.random(in: 0..<200)).map { _ in UInt8.random(in: 0...255) }
                _ = Self.scan(dialect, ByteBuffer(bytes: bytes))
            }
        }
    }

    @Test(arguments: [50.0, 90, 99, 99.9, 100])
    func `percentiles are within a thousandth of those of the sorted values`(percent: Double) {
        var histogram = LatencyHistogram()
        var values: [UInt64] = []
        for power in 0..<40 {
            for _ in 0..<100 { values.append(UInt64.random(in: (1 << power) - 1..<1 << (power + 1) - 1)) }
        }
        for value in values { histogram.record(value) }
        values.sort()
        let exact = values[max(1, Int((percent / 100 * Double(values.count)).rounded(.up))) - 1]
        let found = histogram.valueAtPercentile(percent)
        #expect(found >= exact && found <= exact + exact / 1000)
        #expect(histogram.totalCount == 4000 && histogram.max == values.last)
        histogram.record(.max)
        #expect(histogram.max == .max)
        histogram.reset()
        #expect(histogram.totalCount == 0 && histogram.valueAtPercentile(percent) == 0)
    }

    @Test func `reports are JSON and tables`() {
        var report = BenchReport("x\"y")
        report.add("count", "count", 1_234_567, "things")
        report.add("ratio", "ratio", 0.5, digits: 2)
        report.add("none", "none", Double.nan, digits: 2)
        #expect(report.json == #"{"benchmark":"x\"y","count":1234567,"ratio":0.50,"none":null}"#)
        #expect(report.text.contains("1,234,567 things"))
    }
}

/// The publications and counts of `hermes-bench mqtt`.
@Suite struct MQTTBenchTests {
    @Test func `loss, lateness and duplicates are told apart`() {
        var stream = MQTTBenchStream()
        #expect(stream.arrived(0) == .new(skipped: 0))
        #expect(stream.arrived(3) == .new(skipped: 2))
        #expect(stream.arrived(1) == .late)
        #expect(stream.arrived(1) == .duplicate)
        #expect(stream.arrived(3) == .duplicate)
        #expect(stream.arrived(200) == .new(skipped: 196))
        #expect(stream.arrived(4) == .late)
        #expect(stream.arrived(199) == .late)
        #expect(stream.arrived(200) == .duplicate)
    }

    @Test(arguments: [MQTTVersion.v311, .v5], [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `what is published by hand is a PUBLISH`(version: MQTTVersion, qos: MQTTQoS) throws {
        let command = try BenchCommand.parseAsRoot(["mqtt", "fanin", "-s", "200"]) as? MQTTBench
        var plan = try #require(command).plan
        (plan.version, plan.qos) = (version, qos)
        var buffer = ByteBuffer()
        let topic = plan.topic(of: .publisher(3))
        MQTTBenchTemplate(plan, topic: topic).write(3 << 32 | 7, at: 99, packetID: 5, into: &buffer)
        var decoder = MQTTFrameDecoder()
        let decoded = try decoder.next(from: &buffer)
        let frame = try #require(decoded)
        guard case .publish(let packet) = try MQTTPacket(frame, version: version) else {
            Issue.record("no PUBLISH")
            return
        }
        #expect(packet.topic == topic && topic.hasSuffix("/in/3"))
        #expect(packet.qos == qos && packet.packetID == (qos == .atMostOnce ? nil : 5))
        #expect(packet.payload.readableBytes == 200)
        let stamp = packet.payload.withUnsafeReadableBytes { BenchStamp.read($0) }
        #expect(stamp?.number == 3 << 32 | 7 && stamp?.nanoseconds == 99)
    }

    @Test func `the window counts what is on its way and unacknowledged`() throws {
        let command = try BenchCommand.parseAsRoot(["mqtt", "pair", "-q", "2"]) as? MQTTBench
        let publisher = MQTTBenchPublisher(0, try #require(command).plan)
        #expect(!publisher.answered(5, 1, .exactlyOnce))
        #expect(!publisher.answered(7, 1, .exactlyOnce))
        #expect(!publisher.answered(4, 1, .atLeastOnce))
    }

    @Test func `a thread that ended takes nothing from what the others used`() {
        let before = ServerProbe.CPUTime(threads: ["1": 100, "2": 900])
        let after = ServerProbe.CPUTime(threads: ["1": 150, "3": 20])
        #expect(after.nanoseconds(since: before) == 70)
    }
}
