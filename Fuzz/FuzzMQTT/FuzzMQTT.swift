// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry point for libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMQTT(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    // Not exact: a remaining length may take more bytes than it needs.
    fuzz(input, with: MQTTFrameDecoder.self, limit: 1_024, isExact: false) { frame in
        for version in MQTTVersion.allCases { check(frame, version) }
    }
    // A broker reads the same packets, however many it reads at once.
    let expected = frames(input, with: MQTTFrameDecoder(maxFrameBytes: 1_024), pieceBytes: input.count) { [$0] }
    for pieceBytes in [1, 13, 100, max(1, input.count)] {
        let found = frames(input, with: MQTTInputDecoder(maxFrameBytes: 1_024), pieceBytes: pieceBytes, of: take)
        invariant(found.frames == expected.frames && found.error == expected.error, "a broker reads other packets")
    }
    return 0
}

private func frames<Decoder: FrameDecoder>(
    _ input: UnsafeRawBufferPointer,
    with decoder: Decoder,
    pieceBytes: Int,
    of take: (Decoder.Frame) -> [MQTTFrame]
) -> (frames: [MQTTFrame], error: WireError?) {
    var decoder = decoder
    var frames: [MQTTFrame] = []
    var buffer = ByteBuffer()
    var rest = input[...]
    while !rest.isEmpty {
        buffer.writeBytes(rest.prefix(pieceBytes))
        rest = rest.dropFirst(pieceBytes)
        do {
            while let frame = try decoder.next(from: &buffer) { frames += take(frame) }
        } catch {
            return (frames, error)
        }
    }
    return (frames, nil)
}

/// Returns the input as packets, after checking them.
private func take(_ input: MQTTInput) -> [MQTTFrame] {
    var bytes = ByteBuffer()
    guard (try? input.write(into: &bytes)) != nil, bytes.readableBytes == input.encodedBytes else {
        broken("what was read cannot be written")
    }
    switch input {
    case .other(let frame):
        return [frame]
    case .acknowledgement(let type, let packetID):
        invariant(packetID != 0, "an acknowledgement of 0")
        var decoder = MQTTFrameDecoder(maxFrameBytes: 2)
        guard let frame = try? decoder.next(from: &bytes), frame.type == type else {
            broken("a short acknowledgement is not an acknowledgement")
        }
        return [frame]
    case .publish(let frame):
        for version in MQTTVersion.allCases { check(frame, version) }
        return [frame.frame]
    case .publishes(let run):
        invariant(run.count > 1 && run.count == input.frameCount, "a run of one")
        let frames = (0..<run.count).map(run.frame)
        invariant(frames.reduce(0) { $0 + $1.bytes.readableBytes } == bytes.readableBytes, "a run has a hole")
        for (index, frame) in frames.enumerated() {
            for version in MQTTVersion.allCases { check(frame, version) }
            guard let head = try? MQTTPublishHead(frame, version: .v311) else { continue }
            invariant(head.qos == run.qos && !head.isRetained && !head.isDuplicate, "a run of different packets")
            invariant(head.topicBytes == run.topicBytes, "a run of different topics")
            let body = run.bodies[index]
            let length = head.payloadStart - head.topicStart - head.topicBytes
            invariant(
                body.count == length + frame.bytes.writerIndex - head.payloadStart,
                "what follows the topic is somewhere else"
            )
        }
        return frames.map(\.frame)
    }
}

private func check(_ frame: MQTTPublishFrame, _ version: MQTTVersion) {
    let head = try? MQTTPublishHead(frame, version: version)
    guard let packet = try? MQTTPacket(frame.frame, version: version) else { return }
    guard case .publish(let publish) = packet, let head else { broken("the head of a PUBLISH was refused") }
    let bytes = frame.bytes
    invariant(
        head.qos == publish.qos && head.isRetained == publish.retain && head.isDuplicate == publish.isDuplicate
            && head.packetID == publish.packetID ?? 0,
        "the head says something else"
    )
    invariant(
        bytes.getString(at: head.topicStart, length: head.topicBytes) == publish.topic,
        "the topic is somewhere else"
    )
    invariant(
        bytes.getSlice(at: head.payloadStart, length: bytes.writerIndex - head.payloadStart) == publish.payload,
        "the payload is somewhere else"
    )
    invariant(publish.properties.isEmpty == (head.propertyBytes == 0), "properties that are not there")
}

/// Writes a parsed packet and checks that it reads as the same.
private func check(_ frame: MQTTFrame, _ version: MQTTVersion) {
    guard let packet = try? MQTTPacket(frame, version: version) else { return }
    do {
        var version = version
        if case .connect(let connect) = packet { version = connect.version }
        let written = try packet.frame(version: version)
        // Except that an AUTH may leave out the length of empty properties.
        invariant(written.body.readableBytes <= frame.body.readableBytes + 1, "more is written than was read")
        try invariant(MQTTPacket(written, version: version) == packet, "writing changes a \(packet.type)")
    } catch {
        broken("a \(packet.type) that was read cannot be written and read again: \(error)")
    }
    if case .subscribe(let subscribe) = packet {
        for filter in subscribe.subscriptions.map(\.filter) {
            invariant(MQTTTopic.isValidFilter(filter), "a filter that is not well formed was read")
            guard let (group, rest) = MQTTTopic.sharedParts(of: filter) else { continue }
            invariant(
                "\(MQTTTopic.sharePrefix)\(group)/\(rest)".utf8.elementsEqual(filter.utf8),
                "a filter taken apart"
            )
            invariant(MQTTTopic.isValidFilter(String(rest)) || rest.utf8.starts(with: "$share".utf8), "half a filter")
        }
    }
}

extension MQTTPublishHead {
    fileprivate var isDuplicate: Bool { flags & 0b1000 != 0 }
}
