// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import Testing

struct DeadlineWheelTests {
    private final class Entry: DeadlineWheelEntry {
        let name: Int
        var wheelPosition: DeadlineWheelPosition?
        init(_ name: Int) { self.name = name }
    }

    @Test func `hands out what is due`() {
        var wheel = DeadlineWheel<Entry>(slots: 8)
        let entries = (0..<5).map(Entry.init)
        for (index, entry) in entries.enumerated() { wheel.insert(entry, due: UInt32(index + 1)) }
        #expect(wheel.advance(to: 2).map(\.name) == [0, 1])
        #expect(wheel.advance(to: 2).isEmpty)
        #expect(wheel.count == 3)
        #expect(wheel.advance(to: 100).map(\.name).sorted() == [2, 3, 4])
        #expect(wheel.count == 0)
        #expect(entries.allSatisfy { $0.wheelPosition == nil })
    }

    @Test func `what lies beyond the ring comes early`() {
        var wheel = DeadlineWheel<Entry>(slots: 8)
        wheel.insert(Entry(1), due: 1_000_000)
        #expect(wheel.advance(to: 6).isEmpty)
        #expect(wheel.advance(to: 7).count == 1)
    }

    @Test func `what is past comes next`() {
        var wheel = DeadlineWheel<Entry>(slots: 8)
        _ = wheel.advance(to: 50)
        wheel.insert(Entry(1), due: 3)
        #expect(wheel.advance(to: 51).count == 1)
    }

    @Test func `takes out and moves entries`() {
        var wheel = DeadlineWheel<Entry>(slots: 8)
        let entries = (0..<4).map(Entry.init)
        for entry in entries { wheel.insert(entry, due: 3) }
        wheel.remove(entries[1])
        wheel.remove(entries[1])
        wheel.insert(entries[0], due: 5)
        #expect(wheel.count == 3)
        #expect(Set(wheel.advance(to: 4).map(\.name)) == [2, 3])
        #expect(wheel.advance(to: 5).map(\.name) == [0])
    }

    @Test func `survives any mix of calls`() {
        var wheel = DeadlineWheel<Entry>(slots: 16)
        var random = SystemRandomNumberGenerator()
        let entries = (0..<50).map(Entry.init)
        var now: UInt32 = 0
        var inside = Set<Int>()
        for _ in 0..<5_000 {
            let entry = entries[Int.random(in: 0..<50, using: &random)]
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                wheel.insert(entry, due: now &+ UInt32.random(in: 0..<40, using: &random))
                inside.insert(entry.name)
            case 1:
                wheel.remove(entry)
                inside.remove(entry.name)
            default:
                now += UInt32.random(in: 0..<5, using: &random)
                for due in wheel.advance(to: now) {
                    let wasInside = inside.remove(due.name) != nil
                    #expect(wasInside)
                }
            }
            #expect(wheel.count == inside.count)
        }
    }
}
