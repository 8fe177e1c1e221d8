// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

struct MQTTInboundTests {
    private static let versions: [MQTTVersion] = [.v311, .v5]

    private func publication() throws -> Publication {
        let topic = try #require(TopicName("t"))
        return Publication(topic: topic, payload: ByteBuffer(string: "p"), kind: Publication.plainKind)
    }

    private func run(_ qos: MQTTQoS, _ ids: [UInt16]) -> MQTTPublishRun {
        var bytes = ByteBuffer()
        var bodies: [Range<UInt32>] = []
        for id in ids {
            bytes.writeMultipleIntegers(MQTTPacketType.publish.rawValue << 4 | qos.rawValue << 1, 6 as UInt8)
            bytes.writeMultipleIntegers(1 as UInt16, UInt8(ascii: "t"))
            let start = UInt32(bytes.readableBytes)
            bytes.writeMultipleIntegers(id, UInt8(ascii: "p"))
            bodies.append(start..<UInt32(bytes.readableBytes))
        }
        return MQTTPublishRun(bytes: bytes, topicStart: 4, bodies: bodies)
    }

    // MARK: Aliases

    @Test func `an alias stands for the topic that it was last set to, and its bytes are counted`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        #expect(try inbound.topic("some/topic", alias: 1, maximum: 2) == "some/topic")
        #expect(try inbound.topic("", alias: 1, maximum: 2) == "some/topic")
        #expect(try inbound.topic("other", alias: 2, maximum: 2) == "other")
        #expect(inbound.bytes == 15)
        #expect(try inbound.topic("new", alias: 1, maximum: 2) == "new")
        #expect(try inbound.topic("", alias: 1, maximum: 2) == "new")
        #expect(inbound.bytes == 8)
    }

    @Test func `an alias that is 0, too high or never set is refused`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        for alias: UInt16 in [0, 3] {
            let error = #expect(throws: MQTTPacketError.self) { try inbound.topic("t", alias: alias, maximum: 2) }
            #expect(error?.reason == .topicAliasInvalid)
        }
        let error = #expect(throws: MQTTPacketError.self) { try inbound.topic("", alias: 2, maximum: 2) }
        #expect(error?.reason == .protocolError)
        #expect(inbound.bytes == 0)
    }

    // MARK: QoS 2

    @Test(arguments: versions) func `until PUBREL a packet identifier is the same message`(_ version: MQTTVersion) {
        var inbound = MQTTInbound(version, receiveMaximum: 10)
        #expect(inbound.verdict(on: 7, .exactlyOnce) == .new)
        #expect(inbound.answered(7, .exactlyOnce, .success) == true)
        #expect(inbound.verdict(on: 7, .exactlyOnce) == .repeated)
        // With QoS 1, packet identifiers are not remembered.
        #expect(inbound.verdict(on: 7, .atLeastOnce) == .new)
        #expect(inbound.released(7) == true)
        #expect(inbound.released(7) == false)
        #expect(inbound.verdict(on: 7, .exactlyOnce) == .new)
    }

    @Test func `a refused message is over in 5.0, and released in 3.1.1`() {
        for version in Self.versions {
            var inbound = MQTTInbound(version, receiveMaximum: 10)
            #expect(inbound.answered(7, .exactlyOnce, .notAuthorized) == true)
            #expect(inbound.released(7) == (version == .v311))
        }
    }

    @Test func `a message that is being stored is not acknowledged, released or published twice`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        let number = inbound.stores(7, .exactlyOnce, try publication())
        #expect(inbound.verdict(on: 7, .exactlyOnce) == .awaited)
        #expect(inbound.released(7) == false)
        #expect(inbound.popAcknowledgement() == nil)
        inbound.stored(number, failure: nil)
        #expect(inbound.verdict(on: 7, .exactlyOnce) == .repeated)
        let first = inbound.popAcknowledgement()
        let done = try #require(first)
        #expect(done.type == .pubrec && done.packetID == 7 && done.reason == .success && done.publication != nil)
        #expect(inbound.released(7) == true)
    }

    @Test func `a session's identifiers are known on its next connection`() {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        inbound.resumed([3, 4])
        #expect(inbound.verdict(on: 3, .exactlyOnce) == .repeated)
        #expect(inbound.verdict(on: 5, .exactlyOnce) == .new)
        #expect(inbound.bytes == 16)
    }

    // MARK: Order

    @Test func `what waits for the store holds up what comes after it, but not what was stored before it`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        #expect(inbound.answered(1, .atLeastOnce, .success) == true)
        #expect(!inbound.isBehind)
        let second = inbound.stores(2, .atLeastOnce, try publication())
        inbound.postpones(3, .exactlyOnce, try publication(), heldBytes: 99)
        let fourth = inbound.stores(4, .atLeastOnce, try publication())
        #expect(inbound.answered(5, .atLeastOnce, .notAuthorized) == false)
        #expect(inbound.isBehind)
        inbound.stored(fourth, failure: nil)
        #expect(inbound.popAcknowledgement() == nil)
        inbound.stored(second, failure: nil)
        var all: [MQTTInbound.Acknowledgement] = []
        while let next = inbound.popAcknowledgement() { all.append(next) }
        #expect(all.map(\.packetID) == [2, 3, 4, 5])
        #expect(all.map(\.type) == [.puback, .pubrec, .puback, .puback])
        #expect(all.map(\.reason) == [.success, .success, .success, .notAuthorized])
        #expect(all.map { $0.publication != nil } == [true, true, true, false])
        #expect(all.map(\.heldBytes) == [0, 99, 0, 0])
        #expect(!inbound.isBehind)
        #expect(inbound.answered(6, .atLeastOnce, .success) == true)
    }

    @Test func `what could not be stored reaches nobody; 5.0 is told, 3.1.1 sends it again`() throws {
        for version in Self.versions {
            var inbound = MQTTInbound(version, receiveMaximum: 10)
            let number = inbound.stores(7, .exactlyOnce, try publication())
            inbound.stored(number, failure: .quotaExceeded)
            let first = inbound.popAcknowledgement()
            let done = try #require(first)
            #expect(done.publication == nil && done.reason == .quotaExceeded)
            #expect(done.isWritten == (version == .v5))
            #expect(inbound.verdict(on: 7, .exactlyOnce) == .new)
        }
    }

    @Test func `an answer that nobody waits for changes nothing`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 10)
        for number: UInt64 in [0, 1, .max] { inbound.stored(number, failure: nil) }
        let number = inbound.stores(1, .atLeastOnce, try publication())
        inbound.stored(number + 1, failure: nil)
        #expect(inbound.popAcknowledgement() == nil)
        inbound.stored(number, failure: nil)
        inbound.stored(number, failure: .quotaExceeded)
        #expect(inbound.popAcknowledgement()?.reason == .success)
        inbound.stored(number, failure: nil)
        #expect(inbound.verdict(on: 1, .atLeastOnce) == .new && !inbound.isBehind)
    }

    // MARK: Limits

    @Test func `the receive maximum counts what is not acknowledged or not released`() throws {
        var inbound = MQTTInbound(.v5, receiveMaximum: 3)
        #expect(inbound.answered(1, .exactlyOnce, .success) == true)
        let number = inbound.stores(2, .atLeastOnce, try publication())
        #expect(inbound.verdict(on: 3, .exactlyOnce) == .new)
        #expect(inbound.answered(3, .exactlyOnce, .success) == false)
        #expect(inbound.verdict(on: 4, .atLeastOnce) == .tooMany)
        #expect(inbound.verdict(on: 1, .exactlyOnce) == .repeated)
        inbound.stored(number, failure: nil)
        #expect(inbound.verdict(on: 4, .atLeastOnce) == .new)
    }

    @Test func `3.1.1 has a limit for its identifiers alone`() throws {
        var inbound = MQTTInbound(.v311, receiveMaximum: 3)
        #expect(inbound.limit == 4_096)
        for _ in 0..<4_096 { _ = inbound.stores(1, .atLeastOnce, try publication()) }
        #expect(inbound.verdict(on: 4, .atLeastOnce) == .new && !inbound.isFarBehind)
        #expect(inbound.answered(1, .atLeastOnce, .success) == false)
        #expect(inbound.isFarBehind)
        for id: UInt16 in 1...4_096 { _ = inbound.answered(id, .exactlyOnce, .success) }
        #expect(inbound.verdict(on: 4_097, .exactlyOnce) == .tooMany)
        #expect(inbound.verdict(on: 4_097, .atLeastOnce) == .new)
        #expect(!inbound.areNew(run(.exactlyOnce, [4_097]), .exactlyOnce))
        #expect(inbound.areNew(run(.atLeastOnce, [4_097, 4_098]), .atLeastOnce))
    }

    @Test func `a run is new if each of its packets is`() {
        var inbound = MQTTInbound(.v5, receiveMaximum: 3)
        #expect(inbound.areNew(run(.exactlyOnce, [1, 2, 3]), .exactlyOnce))
        #expect(!inbound.areNew(run(.exactlyOnce, [1, 2, 3, 4]), .exactlyOnce))
        #expect(inbound.areNew(run(.atLeastOnce, [1, 1, 9, 2]), .atLeastOnce))
        #expect(!inbound.areNew(run(.atLeastOnce, [1, 0]), .atLeastOnce))
        #expect(!inbound.areNew(run(.exactlyOnce, [0, 1]), .exactlyOnce))
        #expect(!inbound.areNew(run(.exactlyOnce, [2, 2]), .exactlyOnce))
        #expect(!inbound.areNew(run(.exactlyOnce, [2, 1]), .exactlyOnce))
        #expect(inbound.answered(5, .exactlyOnce, .success) == true)
        #expect(!inbound.areNew(run(.exactlyOnce, [4, 5]), .exactlyOnce))
        #expect(!inbound.areNew(run(.exactlyOnce, [6, 7, 8]), .exactlyOnce))
        #expect(inbound.areNew(run(.exactlyOnce, [6, 7]), .exactlyOnce))
    }

    // MARK: Against a model

    /// A model with lists, which need not be fast.
    private struct Model {
        struct Answer: Equatable {
            let packetID: UInt16
            let qos: MQTTQoS
            var reason: MQTTReasonCode?
        }

        let version: MQTTVersion
        let limit: Int
        /// All answers that were ever delayed, in order. The answers before `first` have been sent.
        var answers: [Answer] = []
        var first = 0
        var received: [UInt16] = []

        var beingStored: [Answer] { answers[first...].filter { $0.reason == nil } }

        func verdict(_ id: UInt16, _ qos: MQTTQoS) -> MQTTInbound.Verdict {
            if qos == .exactlyOnce, received.contains(id) {
                return beingStored.contains { $0.packetID == id && $0.qos == .exactlyOnce } ? .awaited : .repeated
            }
            if version == .v311, qos == .atLeastOnce { return .new }
            let unacknowledged = version == .v311 ? 0 : beingStored.filter { $0.qos == .atLeastOnce }.count
            return received.count + unacknowledged < limit ? .new : .tooMany
        }

        mutating func receive(_ id: UInt16) {
            if !received.contains(id) { received.append(id) }
        }
    }

    @Test(arguments: versions, 1...4 as ClosedRange<UInt64>)
    func `random publications, answers of the store and releases are handled as by lists`(
        _ version: MQTTVersion,
        _ seed: UInt64
    ) throws {
        var random = SplitMix(state: seed)
        let limit = version == .v5 ? 6 : 4_096
        var inbound = MQTTInbound(version, receiveMaximum: 6)
        var model = Model(version: version, limit: limit)
        let publication = try publication()
        for _ in 0..<500 {
            let id = UInt16.random(in: 1...8, using: &random)
            let qos: MQTTQoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
            switch UInt8.random(in: 0..<8, using: &random) {
            case 0..<4:
                let verdict = inbound.verdict(on: id, qos)
                try #require(verdict == model.verdict(id, qos))
                guard verdict == .new else { continue }
                switch UInt8.random(in: 0..<3, using: &random) {
                case 0:
                    let number = inbound.stores(id, qos, publication)
                    model.answers.append(.init(packetID: id, qos: qos))
                    try #require(number == UInt64(model.answers.count))
                    if qos == .exactlyOnce { model.receive(id) }
                case 1 where inbound.isBehind:
                    inbound.postpones(id, qos, publication, heldBytes: 1)
                    model.answers.append(.init(packetID: id, qos: qos, reason: .success))
                    if qos == .exactlyOnce { model.receive(id) }
                default:
                    let reason: MQTTReasonCode = Bool.random(using: &random) ? .success : .notAuthorized
                    let isNow = inbound.answered(id, qos, reason)
                    try #require(isNow == (model.first == model.answers.count))
                    if !isNow { model.answers.append(.init(packetID: id, qos: qos, reason: reason)) }
                    if qos == .exactlyOnce, version == .v311 || !reason.isFailure { model.receive(id) }
                }
            case 4..<6:
                let open = model.answers.indices.filter { model.answers[$0].reason == nil && $0 >= model.first }
                guard let index = open.randomElement(using: &random) else { continue }
                let failure: MQTTReasonCode? = Bool.random(using: &random) ? nil : .quotaExceeded
                inbound.stored(UInt64(index + 1), failure: failure)
                model.answers[index].reason = failure ?? .success
                let answer = model.answers[index]
                if failure != nil, answer.qos == .exactlyOnce { model.received.removeAll { $0 == answer.packetID } }
                while let done = inbound.popAcknowledgement() {
                    let expected = model.answers[model.first]
                    model.first += 1
                    try #require(expected == .init(packetID: done.packetID, qos: expected.qos, reason: done.reason))
                    try #require(done.type == MQTTInbound.answer(to: expected.qos))
                }
                try #require(model.first == model.answers.count || model.answers[model.first].reason == nil)
            default:
                let isKnown =
                    model.received.contains(id)
                    && !model.beingStored.contains { $0.packetID == id && $0.qos == .exactlyOnce }
                try #require(inbound.released(id) == isKnown)
                if isKnown { model.received.removeAll { $0 == id } }
            }
            try #require(inbound.isBehind == (model.first < model.answers.count))
            try #require(inbound.bytes == 8 * model.received.count)
        }
    }
}
