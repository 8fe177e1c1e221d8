// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import NIOCore

/// The entry that libFuzzer calls.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMQTT(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    // Not exact: a remaining length may take more bytes than it needs.
    fuzz(input, with: MQTTInputDecoder.self, limit: 1_024, isExact: false) { frame in
        for version in MQTTVersion.allCases { check(frame, version) }
    }
    fuzz(input, with: MQTTFrameDecoder.self, limit: 1_024, isExact: false) { frame in
        for version in MQTTVersion.allCases { check(frame, version) }
    }
    return 0
}

private func check(_ input: MQTTInput, _ version: MQTTVersion) {
    switch input {
    case .other(let frame):
        invariant(frame.type != .publish, "a PUBLISH as a frame")
        check(frame, version)
    case .acknowledgement(let type, let packetID):
        invariant(packetID != 0, "an acknowledgement of 0")
        var bytes = ByteBuffer()
        var decoder = MQTTFrameDecoder(maxFrameBytes: 2)
        guard (try? input.write(into: &bytes)) != nil, let frame = try? decoder.next(from: &bytes),
            let packet = try? MQTTPacket(frame, version: version)
        else { broken("a short acknowledgement is not an acknowledgement") }
        invariant(packet.type == type, "another acknowledgement")
    case .publish(let frame):
        check(frame.frame, version)
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
}

/// What can be read can be written, and reads as the same.
private func check(_ frame: MQTTFrame, _ version: MQTTVersion) {
    guard let packet = try? MQTTPacket(frame, version: version) else { return }
    do {
        var version = version
        if case .connect(let connect) = packet { version = connect.version }
        let written = try packet.frame(version: version)
        invariant(written.body.readableBytes <= frame.body.readableBytes, "more is written than was read")
        try invariant(MQTTPacket(written, version: version) == packet, "writing changes a \(packet.type)")
    } catch {
        broken("a \(packet.type) that was read cannot be written and read again: \(error)")
    }
    if case .subscribe(let subscribe) = packet {
        for filter in subscribe.subscriptions.map(\.filter) where MQTTTopic.isValidFilter(filter) {
            guard let (group, rest) = MQTTTopic.sharedParts(of: filter) else { continue }
            invariant(
                "\(MQTTTopic.sharePrefix)\(group)/\(rest)".utf8.elementsEqual(filter.utf8),
                "a filter taken apart"
            )
            invariant(MQTTTopic.isValidFilter(String(rest)) || rest.utf8.starts(with: "$share".utf8), "half a filter")
        }
    }
}
