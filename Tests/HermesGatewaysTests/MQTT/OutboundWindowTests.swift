// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesGateways

@Suite struct OutboundWindowTests {
    @Test func `the next numbers have the next identifiers, up to the limit`() {
        var window = OutboundWindow(limit: 2)
        #expect(window.isEmpty && window.hasRoom && window.next == 1)
        #expect(window.send(exactlyOnce: false) == 1)
        #expect(window.send(exactlyOnce: true) == 2)
        #expect(!window.hasRoom && window.inflight == 2)
        #expect(window.acknowledged(1) == .completed(1))
        #expect(window.hasRoom && window.base == 2 && window.nextPacketID == 3)
    }

    @Test func `each answer is taken in its phase alone`() {
        var window = OutboundWindow(limit: 10)
        let once = window.send(exactlyOnce: true)
        let least = window.send(exactlyOnce: false)
        for id in [0, 3, OutboundWindow.maxSpan + 1, 65_535] {
            #expect(window.acknowledged(UInt16(id)) == .unknown)
            #expect(window.received(UInt16(id)) == .unknown)
            #expect(window.finished(UInt16(id)) == .unknown)
        }
        #expect(window.acknowledged(once) == .unknown)
        #expect(window.finished(once) == .unknown)
        #expect(window.received(least) == .unknown)
        #expect(window.received(once) == .received(1))
        #expect(window.received(once) == .alreadyReceived)
        #expect(window.finished(once) == .completed(1))
        #expect(window.finished(once) == .unknown)
        #expect(window.acknowledged(least) == .completed(2))
        #expect(window.isEmpty && window.inflight == 0)
    }

    @Test func `a message that the client refuses is done`() {
        var window = OutboundWindow(limit: 10)
        let first = window.send(exactlyOnce: true)
        let second = window.send(exactlyOnce: true)
        #expect(window.received(first, isRefused: true) == .completed(1))
        #expect(window.received(second) == .received(2))
        #expect(window.received(second, isRefused: true) == .completed(2))
        #expect(window.isEmpty)
    }

    @Test func `an old message that is open keeps its identifier from being given again`() {
        var window = OutboundWindow(limit: 3, span: 4)
        for _ in 1...3 { _ = window.send(exactlyOnce: false) }
        #expect(window.acknowledged(2) == .completed(2))
        #expect(window.send(exactlyOnce: false) == 4)
        #expect(window.acknowledged(3) == .completed(3))
        // Number 5 would have the identifier of number 1.
        #expect(window.inflight == 2 && !window.hasRoom && window.mostNext == 4)
        #expect(window.acknowledged(1) == .completed(1))
        #expect(window.base == 4 && window.hasRoom)
        #expect(window.send(exactlyOnce: false) == 1)
        #expect(window.acknowledged(4) == .completed(4))
        #expect(window.acknowledged(1) == .completed(5))
    }

    @Test func `numbers that are skipped are not awaited`() {
        var window = OutboundWindow(first: 7, limit: 10)
        window.skip(to: 9)
        #expect(window.isEmpty && window.base == 9)
        let ninth = window.send(exactlyOnce: false)
        window.skip(to: 12)
        let twelfth = window.resumeReleased()
        #expect((ninth, twelfth) == (9, 12))
        #expect(window.acknowledged(10) == .unknown)
        #expect(window.finished(twelfth) == .completed(12))
        #expect(window.base == 9)
        #expect(window.acknowledged(ninth) == .completed(9))
        #expect(window.isEmpty && window.next == 13)
    }

    @Test func `the highest numbers have identifiers, too`() {
        var window = OutboundWindow(first: .max - 70_000, limit: 1)
        for _ in 0..<70_000 {
            let number = window.next
            let id = window.send(exactlyOnce: false)
            #expect(id >= 1 && id <= UInt16(OutboundWindow.maxSpan))
            #expect(window.acknowledged(id) == .completed(number))
        }
    }
}
