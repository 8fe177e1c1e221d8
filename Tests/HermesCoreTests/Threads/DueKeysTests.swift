// Hermes
// SPDX-License-Identifier: Apache-2.0

import HeapModule
import Testing

@testable import HermesCore

struct DueKeysTests {
    @Test func `keys come when they are due, in that order, each once`() {
        var keys = DueKeys<String, Int>()
        for (key, due) in [("c", 3), ("a", 1), ("b", 9), ("b", 2)] { keys.set(key, dueAt: due) }
        #expect(keys.nextDue == 1)
        #expect(keys.popDue(now: 0) == nil)
        #expect(keys.popDue(now: 2) == "a")
        #expect(keys.popDue(now: 2) == "b")
        #expect(keys.popDue(now: 2) == nil)
        keys.remove("c")
        #expect(keys.popDue(now: 99) == nil)
        #expect(keys.count == 0)
    }

    @Test func `a key that is set again for the same time takes one record, and comes again after it came`() {
        var keys = DueKeys<String, Int>()
        for _ in 0..<10 { keys.set("a", dueAt: 1) }
        #expect(keys.heap.count == 1)
        #expect(keys.popDue(now: 1) == "a")
        keys.set("a", dueAt: 1)
        #expect(keys.popDue(now: 1) == "a")
        keys.set("a", dueAt: 1)
        keys.remove("a")
        keys.set("a", dueAt: 1)
        #expect(keys.popDue(now: 1) == "a" && keys.popDue(now: 1) == nil)
    }

    @Test func `what was removed leaves nothing behind, however late it was due`() {
        var keys = DueKeys<Int, Int>()
        for round in 0..<10_000 {
            keys.set(round % 4, dueAt: 604_800 + round)
            if round % 3 == 0 { keys.remove(round % 4) }
            #expect(keys.heap.count <= 2 * 4 + 65)
        }
    }
}
