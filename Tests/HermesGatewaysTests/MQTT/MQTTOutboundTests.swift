// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

struct MQTTOutboundTests {
    private func topic(_ name: String) throws -> TopicName { try #require(TopicName(name)) }

    private func message(_ payload: String, _ qos: QoS = .atLeastOnce) throws -> MQTTWaitingQueue.Message {
        let publication = Publication(
            topic: try topic("t"),
            payload: ByteBuffer(string: payload),
            kind: Publication.plainKind,
            qos: qos
        )
        return MQTTWaitingQueue.Message(publication: publication, qos: qos, isRetained: false, identifiers: [])
    }

    private func payload(_ message: MQTTWaitingQueue.Message?) -> String? {
        message.map { String(buffer: $0.publication.payload) }
    }

    // MARK: Aliases

    @Test func `the first topics get aliases while they last`() throws {
        var outbound = MQTTOutbound()
        #expect(!outbound.usesAliases)
        #expect(try outbound.alias(of: topic("a"), mayAdd: true) == .noAlias)
        outbound.accepted(receiveMaximum: 1, maxAlias: 2)
        #expect(outbound.usesAliases)
        #expect(try outbound.alias(of: topic("a"), mayAdd: false) == .noAlias)
        #expect(try outbound.alias(of: topic("a"), mayAdd: true) == .new(1))
        #expect(try outbound.alias(of: topic("b"), mayAdd: true) == .new(2))
        #expect(try outbound.alias(of: topic("c"), mayAdd: true) == .noAlias)
        #expect(try outbound.alias(of: topic("a"), mayAdd: false) == .known(1))
        #expect(outbound.bytes == 130)
    }

    @Test func `a long topic gets none`() throws {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 1, maxAlias: 2)
        let longest = String(repeating: "x", count: MQTTOutbound.maxAliasedTopicBytes)
        #expect(try outbound.alias(of: topic(longest + "x"), mayAdd: true) == .noAlias)
        #expect(try outbound.alias(of: topic(longest), mayAdd: true) == .new(1))
    }

    @Test func `an alias that the client was not told goes to another topic`() throws {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 1, maxAlias: 2)
        #expect(try outbound.alias(of: topic("a"), mayAdd: true) == .new(1))
        #expect(try outbound.alias(of: topic("b"), mayAdd: true) == .new(2))
        try outbound.forgetAlias(of: topic("b"))
        try outbound.forgetAlias(of: topic("never"))
        #expect(outbound.bytes == 65)
        #expect(try outbound.alias(of: topic("c"), mayAdd: true) == .new(2))
        #expect(try outbound.alias(of: topic("b"), mayAdd: true) == .noAlias)
        outbound.ended()
        #expect(outbound.bytes == 0)
        #expect(try outbound.alias(of: topic("a"), mayAdd: true) == .noAlias)
    }

    // MARK: The window and the queue

    @Test func `what comes after a message that waits, waits behind it`() throws {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 2, maxAlias: 0)
        #expect(outbound.hasRoom && outbound.hasRoom(for: 2) && !outbound.hasRoom(for: 3))
        _ = outbound.window.send(exactlyOnce: false)
        #expect(outbound.hasRoom && !outbound.hasRoom(for: 2))
        let isTaken = try outbound.waiting.append(message("first"), maxCount: 1, maxBytes: 1_000)
        #expect(isTaken && !outbound.hasRoom && !outbound.hasRoom(for: 1))
        #expect(outbound.bytes == outbound.waiting.bytes && outbound.bytes > 0)
        #expect(payload(outbound.popWaiting()) == "first")
        #expect(outbound.hasRoom && outbound.bytes == 0)
        #expect(outbound.popWaiting() == nil)
    }

    @Test func `a full window holds back what waits`() throws {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 1, maxAlias: 0)
        let id = outbound.window.send(exactlyOnce: false)
        let isTaken = try outbound.waiting.append(message("first"), maxCount: 1, maxBytes: 1_000)
        #expect(isTaken)
        #expect(outbound.popWaiting() == nil)
        let answer = outbound.acknowledged(.puback, id, isRefused: false, storesReleases: false)
        #expect(answer == .completed(1))
        #expect(payload(outbound.popWaiting()) == "first")
    }

    @Test func `the queue has bounds of messages and of bytes`() throws {
        var outbound = MQTTOutbound()
        let weight = try {
            var queue = MQTTWaitingQueue()
            _ = try queue.append(message("12345678"), maxCount: 1, maxBytes: .max)
            return queue.bytes
        }()
        func append(maxCount: Int, maxBytes: Int) throws -> Bool {
            try outbound.waiting.append(message("12345678"), maxCount: maxCount, maxBytes: maxBytes)
        }
        #expect(try !append(maxCount: 0, maxBytes: .max))
        #expect(try !append(maxCount: 9, maxBytes: weight - 1))
        #expect(outbound.waiting.isEmpty)
        #expect(try append(maxCount: 9, maxBytes: weight))
        #expect(try !append(maxCount: 9, maxBytes: 2 * weight - 1))
        #expect(try !append(maxCount: 1, maxBytes: .max))
        #expect(outbound.waiting.count == 1 && outbound.waiting.bytes == weight)
    }

    // MARK: Acknowledgements

    @Test func `a clean session's PUBREC is answered at once, a kept one's after it is stored`() {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 9, maxAlias: 0)
        for isKept in [false, true] {
            let number = outbound.window.next
            let id = outbound.window.send(exactlyOnce: true)
            func answer(_ type: MQTTPacketType) -> OutboundWindow.Answer {
                outbound.acknowledged(type, id, isRefused: false, storesReleases: isKept)
            }
            #expect(answer(.puback) == .unknown && answer(.pubcomp) == .unknown)
            #expect(answer(.pubrec) == .received(number))
            #expect(answer(.pubrec) == (isKept ? .releaseAwaited : .alreadyReceived))
            outbound.window.released(id)
            #expect(answer(.pubrec) == .alreadyReceived)
            #expect(answer(.pubcomp) == .completed(number))
            #expect(answer(.pubcomp) == .unknown)
        }
        #expect(outbound.window.isEmpty)
    }

    @Test func `a refusal ends the exchange in each phase, and its place is not given back twice`() {
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: 9, maxAlias: 0)
        for receipts in 0...2 {
            let number = outbound.window.next
            let id = outbound.window.send(exactlyOnce: true)
            for _ in 0..<receipts {
                _ = outbound.acknowledged(.pubrec, id, isRefused: false, storesReleases: true)
                if receipts == 2 { outbound.window.released(id) }
            }
            let refused = outbound.acknowledged(.pubrec, id, isRefused: true, storesReleases: true)
            #expect(refused == .completed(number))
            outbound.window.released(id)
            let again = outbound.acknowledged(.pubrec, id, isRefused: true, storesReleases: true)
            #expect(again == .unknown)
        }
        #expect(outbound.window.isEmpty && outbound.window.inflight == 0)
    }

    // MARK: Against a model

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `random messages and answers are handled as by lists`(_ seed: UInt64) throws {
        enum State { case puback, pubrec, storing, pubcomp }
        var random = SplitMix(state: seed)
        let limit = 4
        var outbound = MQTTOutbound()
        outbound.accepted(receiveMaximum: limit, maxAlias: 0)
        var states: [UInt16: State] = [:]
        var numbers: [UInt16: UInt64] = [:]
        var queue: [String] = []
        var sent: UInt64 = 0
        func send(exactlyOnce: Bool) throws {
            sent += 1
            let id = outbound.window.send(exactlyOnce: exactlyOnce)
            try #require(states[id] == nil)
            states[id] = exactlyOnce ? .pubrec : .puback
            numbers[id] = sent
        }
        for step in 0..<600 {
            let open = Bool.random(using: &random) ? states.keys.sorted().randomElement(using: &random) : nil
            let id = open ?? UInt16.random(in: 1...UInt16(clamping: sent + 2), using: &random)
            let isKept = Bool.random(using: &random)
            switch UInt8.random(in: 0..<8, using: &random) {
            case 0, 1:
                try #require(outbound.hasRoom == (queue.isEmpty && states.count < limit))
                if outbound.hasRoom {
                    try send(exactlyOnce: Bool.random(using: &random))
                } else {
                    let isTaken = try outbound.waiting.append(message("\(step)"), maxCount: 5, maxBytes: .max)
                    try #require(isTaken == (queue.count < 5))
                    if isTaken { queue.append("\(step)") }
                }
            case 2:
                let next = payload(outbound.popWaiting())
                try #require(next == (states.count < limit ? queue.first : nil))
                guard next != nil else { continue }
                queue.removeFirst()
                try send(exactlyOnce: false)
            case 3:
                let answer = outbound.acknowledged(.puback, id, isRefused: false, storesReleases: isKept)
                guard states[id] == .puback, let number = numbers[id] else {
                    try #require(answer == .unknown)
                    continue
                }
                try #require(answer == .completed(number))
                states[id] = nil
            case 4, 5:
                let isRefused = UInt8.random(in: 0..<4, using: &random) == 0
                let answer = outbound.acknowledged(.pubrec, id, isRefused: isRefused, storesReleases: isKept)
                guard let state = states[id], state != .puback, let number = numbers[id] else {
                    try #require(answer == .unknown)
                    continue
                }
                if isRefused {
                    try #require(answer == .completed(number))
                    states[id] = nil
                    continue
                }
                switch state {
                case .pubrec:
                    try #require(answer == .received(number))
                    states[id] = isKept ? .storing : .pubcomp
                case .storing: try #require(answer == .releaseAwaited)
                case .pubcomp: try #require(answer == .alreadyReceived)
                case .puback: break
                }
            case 6:
                outbound.window.released(id)
                if states[id] == .storing { states[id] = .pubcomp }
            default:
                let answer = outbound.acknowledged(.pubcomp, id, isRefused: false, storesReleases: isKept)
                guard states[id] == .storing || states[id] == .pubcomp, let number = numbers[id] else {
                    try #require(answer == .unknown)
                    continue
                }
                try #require(answer == .completed(number))
                states[id] = nil
            }
            try #require(outbound.window.inflight == states.count)
            try #require(outbound.waiting.count == queue.count && outbound.waiting.isEmpty == queue.isEmpty)
            try #require(outbound.window.isEmpty == states.isEmpty && outbound.window.next == sent + 1)
        }
    }
}
