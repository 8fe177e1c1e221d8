// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore
import Testing

struct OutboundQueueTests {
    private func frame(_ number: UInt8) -> ByteBuffer { ByteBuffer(repeating: number, count: 10) }

    private func numbers(_ queue: OutboundQueue) -> [UInt8] {
        var queue = queue
        var numbers: [UInt8] = []
        while let waiting = queue.popFirst() { numbers.append(waiting.bytes.getInteger(at: 0) ?? 0) }
        return numbers
    }

    @Test func `keeps the order over all classes`() {
        var queue = OutboundQueue()
        let classes: [Publication.DropClass] = [.control, .text, .gift, .text, .presence, .control]
        for (number, kind) in classes.enumerated() {
            #expect(queue.append(frame(UInt8(number)), kind, limit: 1_000) == .queued)
        }
        #expect(queue.count == 6)
        #expect(queue.bytes == 60)
        #expect(numbers(queue) == [0, 1, 2, 3, 4, 5])
    }

    @Test func `a frame and what it shares stay together and both count`() {
        var queue = OutboundQueue()
        #expect(queue.append(frame(1), sharing: frame(2), .text, limit: 40) == .queued)
        #expect(queue.append(frame(3), .control, limit: 40) == .queued)
        #expect(queue.bytes == 30 && queue.count == 2)
        var oneText = OutboundQueue.Dropped()
        oneText.text = 1
        #expect(queue.append(frame(4), sharing: frame(5), .control, limit: 40) == .queuedDropping(oneText))
        #expect(queue.bytes == 30)
        #expect(queue.popFirst()?.body == nil)
        #expect(queue.popFirst()?.body == frame(5))
        #expect(queue.bytes == 0)
    }

    @Test func `drops the oldest of the least important`() {
        var queue = OutboundQueue()
        _ = queue.append(frame(0), .control, limit: 40)
        _ = queue.append(frame(1), .text, limit: 40)
        _ = queue.append(frame(2), .gift, limit: 40)
        _ = queue.append(frame(3), .text, limit: 40)
        var oneText = OutboundQueue.Dropped()
        oneText.text = 1
        #expect(queue.append(frame(4), .text, limit: 40) == .queuedDropping(oneText))
        #expect(numbers(queue) == [0, 2, 3, 4])
        #expect(queue.append(frame(5), .control, limit: 40) == .queuedDropping(oneText))
        #expect(queue.append(frame(6), .gift, limit: 40) == .queuedDropping(oneText))
        var oneGift = OutboundQueue.Dropped()
        oneGift.gift = 1
        #expect(queue.append(frame(7), .control, limit: 40) == .queuedDropping(oneGift))
        #expect(numbers(queue) == [0, 5, 6, 7])
    }

    @Test func `texts go first, then joins and leaves, then gifts`() {
        var queue = OutboundQueue()
        let classes: [Publication.DropClass] = [.gift, .presence, .text, .control]
        for (number, kind) in classes.enumerated() { _ = queue.append(frame(UInt8(number)), kind, limit: 40) }
        var left: [[UInt8]] = []
        for number in UInt8(4)..<7 {
            _ = queue.append(frame(number), .control, limit: 40)
            left.append(numbers(queue))
        }
        #expect(left == [[0, 1, 3, 4], [0, 3, 4, 5], [3, 4, 5, 6]])
        #expect(queue.append(frame(7), .control, limit: 40) == .overflow)
    }

    @Test func `text makes no room at the cost of gifts`() {
        var queue = OutboundQueue()
        _ = queue.append(frame(0), .gift, limit: 20)
        _ = queue.append(frame(1), .control, limit: 20)
        #expect(queue.append(frame(2), .text, limit: 20) == .refused)
        #expect(numbers(queue) == [0, 1])
    }

    @Test func `nothing important is dropped`() {
        var queue = OutboundQueue()
        _ = queue.append(frame(0), .control, limit: 20)
        _ = queue.append(frame(1), .control, limit: 20)
        #expect(queue.append(frame(2), .control, limit: 20) == .overflow)
        #expect(queue.append(ByteBuffer(repeating: 0, count: 21), .control, limit: 20) == .overflow)
    }

    @Test func `is empty again once all is taken`() {
        var queue = OutboundQueue()
        _ = queue.append(frame(0), .text, limit: 20)
        #expect(!queue.isEmpty)
        #expect(queue.popFirst() != nil)
        #expect(queue.isEmpty)
        #expect(queue.bytes == 0)
        #expect(queue.popFirst() == nil)
    }
}

/// The costs of the queue apart from its bytes.
@Suite struct OutboundQueueCostTests {
    @Test func `tiny frames are limited by their number`() {
        var queue = OutboundQueue()
        for _ in 0..<10_000 { _ = queue.append(ByteBuffer(bytes: [1]), .text, limit: 64 * 1_024) }
        #expect(queue.count == 1_024)
        for _ in 0..<1_024 { _ = queue.append(ByteBuffer(bytes: [1]), .control, limit: 64 * 1_024) }
        #expect(queue.count == 1_024)
        #expect(queue.append(ByteBuffer(bytes: [1]), .control, limit: 64 * 1_024) == .overflow)
    }

    @Test func `a frame that must not be dropped may be longer than the limit`() {
        var queue = OutboundQueue()
        let long = ByteBuffer(repeating: 0, count: 100)
        #expect(queue.append(ByteBuffer(repeating: 0, count: 30), .control, limit: 64) == .queued)
        #expect(queue.append(long, .control, limit: 64) == .queued)
        #expect(queue.append(long, .control, limit: 64) == .overflow)
        #expect(queue.append(long, .text, limit: 64) == .refused)
    }
}

/// Frames that were appended together.
@Suite struct OutboundQueueRunTests {
    private func frames(_ number: UInt8) -> ByteBuffer { ByteBuffer(repeating: number, count: 30) }

    @Test func `come and go together`() {
        var queue = OutboundQueue()
        #expect(queue.append(frames(1), .text, frameCount: 3, limit: 60) == .queued)
        #expect(queue.append(frames(2), .text, frameCount: 2, limit: 60) == .queued)
        var dropped = OutboundQueue.Dropped()
        dropped.text = 3
        #expect(queue.append(frames(3), .text, frameCount: 1, limit: 60) == .queuedDropping(dropped))
        let first = queue.popFirst()
        #expect(first?.bytes == frames(2) && first?.frameCount == 2)
        #expect(queue.bytes == 30)
        #expect(queue.popFirst()?.frameCount == 1)
        #expect(queue.isEmpty)
    }
}
