// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite struct LaneQueueTests {
    private func place(_ isFirst: Bool, _ source: String, _ owner: String = "") -> LaneQueue<String>.Place {
        LaneQueue<String>.Place(isFirst: isFirst, source: source, owner: owner)
    }

    /// Returns whether the item waits, and which item it replaces.
    private func append(
        _ item: String,
        to queue: inout LaneQueue<String>,
        at place: LaneQueue<String>.Place
    ) -> (waits: Bool, insteadOf: String?) {
        switch queue.append(item, at: place) {
        case .waits: (true, nil)
        case .replaces(let other): (true, other)
        case .refused: (false, nil)
        }
    }

    private func takeAll(_ queue: inout LaneQueue<String>) -> [String] {
        var taken: [String] = []
        while let item = queue.popFirst() { taken.append(item) }
        return taken
    }

    @Test func `everybody has a turn`() {
        var queue = LaneQueue<String>(maxCount: 100, maxCountOfOne: 10)
        let many = (0...10).map { append("a\($0)", to: &queue, at: place(true, "a")).waits }
        #expect(many == Array(repeating: true, count: 10) + [false])
        _ = append("b0", to: &queue, at: place(true, "b"))
        let first = [queue.popFirst(), queue.popFirst(), queue.popFirst()]
        #expect(first == ["a0", "b0", "a1"])
        for number in 0..<10 { _ = append("s\(number)", to: &queue, at: place(false, "s\(number)")) }
        let taken = takeAll(&queue)
        #expect(taken.count == 18)
        #expect(taken.prefix(4).allSatisfy { $0.hasPrefix("a") }, "the first lane goes before")
        #expect(taken.firstIndex(of: "s0") ?? 99 < taken.firstIndex(of: "a9") ?? 0, "but never for ever")
        #expect(queue.count == 0)
    }

    @Test
    func `an address with many accounts has no more turns than one with a single account`() {
        var queue = LaneQueue<String>(maxCount: 100, maxCountOfOne: 10)
        for number in 0..<20 { _ = append("a\(number)", to: &queue, at: place(true, "a", "\(number)")) }
        for number in 0..<3 { _ = append("b\(number)", to: &queue, at: place(true, "b", "one")) }
        #expect(takeAll(&queue).prefix(6) == ["a0", "b0", "a1", "b1", "a2", "b2"])
    }

    @Test func `a full lane leaves room in the other`() {
        var queue = LaneQueue<String>(maxCount: 5, maxCountOfOne: 5)
        let taken = (0...5).map { append("s\($0)", to: &queue, at: place(false, "s\($0)")).waits }
        #expect(taken == [true, true, true, true, true, false])
        let other = append("t", to: &queue, at: place(true, "t"))
        #expect(other.waits && other.insteadOf == nil)
        let first = queue.popFirst()
        #expect(first == "t")
    }

    @Test
    func `six accounts of one address do not fill the lane of logins for others`() {
        var queue = LaneQueue<String>(maxCount: 100, maxCountOfOne: 20)
        for number in 0..<120 { _ = append("a\(number)", to: &queue, at: place(true, "a", "\(number % 6)")) }
        #expect(queue.count == 100)
        let victim = append("b0", to: &queue, at: place(true, "b", "victim"))
        #expect(victim.waits && victim.insteadOf?.hasPrefix("a") == true)
        let greedy = append("a", to: &queue, at: place(true, "a", "0"))
        #expect(!greedy.waits)
        #expect(queue.count == 100)
        let second = queue.popFirst().map { [$0, queue.popFirst() ?? ""] } ?? []
        #expect(second.contains("b0"), "it is the victim's turn at once: \(second)")
    }

    @Test
    func `within an address, the account with the most makes room`() {
        var queue = LaneQueue<String>(maxCount: 10, maxCountOfOne: 9)
        for number in 0..<9 { _ = append("a\(number)", to: &queue, at: place(true, "proxy", "a")) }
        _ = append("b0", to: &queue, at: place(true, "proxy", "b"))
        let other = append("c0", to: &queue, at: place(true, "proxy", "c"))
        #expect(other.insteadOf == "a8", "the newest of the one with the most")
        #expect(takeAll(&queue).count == 10)
    }

    @Test(arguments: 1...20)
    func `whatever comes and goes, each item is taken, replaced or refused, once`(_ seed: UInt64) {
        var random = SplitMix(state: seed)
        var queue = LaneQueue<String>(maxCount: 8, maxCountOfOne: 4)
        var ended: [String] = []
        for number in 0..<500 {
            if Bool.random(using: &random) {
                let at = place(
                    Bool.random(using: &random),
                    "s\(Int.random(in: 0..<4, using: &random))",
                    "o\(Int.random(in: 0..<3, using: &random))"
                )
                let item = "\(number)"
                switch queue.append(item, at: at) {
                case .waits: break
                case .replaces(let other): ended.append(other)
                case .refused: ended.append(item)
                }
            } else if let item = queue.popFirst() {
                ended.append(item)
            } else {
                ended.append("\(number)")
            }
            if !Bool.random(using: &random), let item = queue.popFirst() { ended.append(item) }
        }
        ended += takeAll(&queue)
        #expect(Set(ended).count == ended.count)
        #expect(queue.count == 0)
    }
}
