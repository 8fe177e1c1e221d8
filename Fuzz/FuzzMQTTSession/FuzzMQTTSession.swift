// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzServer
import FuzzSupport
import HermesCore
import HermesGateways
import HermesWire
import NIOCore

/// The entry point for libFuzzer.
///
/// The first byte controls the connection: bit 0: a valid CONNECT comes first; bit 1: of version 5;
/// bit 2: of a kept session; bit 3: in small pieces. The rest is the client's output.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMQTTSession(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    guard let mode = input.first else { return 0 }
    let bytes = input.dropFirst()
    checkTopics(UnsafeRawBufferPointer(rebasing: bytes))

    let broker = Broker.shared
    let peer = broker.connect()
    if mode & 1 != 0 {
        let lasts = mode & 4 != 0
        var connect = MQTTConnect(version: mode & 2 != 0 ? .v5 : .v311, clientID: "fuzz", cleanStart: !lasts)
        if lasts, connect.version == .v5 { connect.properties = [.sessionExpiryInterval(60)] }
        peer.send(packet: .connect(connect), version: connect.version)
        peer.receive(atLeast: 4)
    }
    var rest = bytes
    while !rest.isEmpty {
        let piece = rest.prefix(mode & 8 != 0 ? 7 : 4_096)
        rest = rest.dropFirst(piece.count)
        guard peer.send(piece) else { break }
        // The server has read it, so that the next is a piece of its own.
        if mode & 8 != 0 { broker.turn() }
    }
    broker.settle(peer)
    peer.close()
    checkOutput(peer.received)
    broker.check()
    return 0
}

/// Checks that the server's packets can be read in the client's version.
private func checkOutput(_ bytes: ByteBuffer) {
    var readable = Set(MQTTVersion.allCases)
    var buffer = bytes
    var decoder = MQTTFrameDecoder()
    do {
        while let frame = try decoder.next(from: &buffer) {
            for version in readable where (try? MQTTPacket(frame, version: version)) == nil { readable.remove(version) }
            invariant(!readable.isEmpty, "the server sent a packet that cannot be read: \(frame.header) \(frame.body)")
        }
    } catch {
        broken("the server sent what is no packet: \(error)")
    }
}

/// Checks that the wire and the core agree about valid topics, and the trees about matches.
private func checkTopics(_ bytes: UnsafeRawBufferPointer) {
    let lines = bytes.prefix(256).split(separator: 0x0A, maxSplits: 3, omittingEmptySubsequences: false)
    let texts = lines.compactMap { String(validating: $0, as: UTF8.self) }
    var tree = TopicTree()
    var filters: [TopicFilter] = []
    for text in texts {
        invariant((TopicName(text) != nil) == MQTTTopic.isValidName(text), "a name for one is none for the other")
        guard !text.utf8.starts(with: MQTTTopic.sharePrefix.utf8) else { continue }
        let filter = TopicFilter(text, maxLevels: 1_000)
        invariant((filter != nil) == MQTTTopic.isValidFilter(text), "a filter for one is none for the other")
        guard let filter, !filters.contains(filter) else { continue }
        tree.insert(filter, value: UInt32(filters.count))
        filters.append(filter)
    }
    for topic in texts.compactMap(TopicName.init) {
        var found: [UInt32] = []
        tree.forEachMatch(of: topic) { found.append($0) }
        let expected = filters.indices.filter { filters[$0].matches(topic) }.map { UInt32($0) }
        invariant(found.sorted() == expected, "the tree finds something else")
    }
}
