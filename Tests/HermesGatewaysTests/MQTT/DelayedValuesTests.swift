// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesGateways

struct DelayedValuesTests {
    @Test func `values come when they are due, in that order`() {
        var values = DelayedValues<String, Int>()
        values.insert(3, for: "c", dueAt: .seconds(3))
        values.insert(1, for: "a", dueAt: .seconds(1))
        values.insert(2, for: "b", dueAt: .seconds(2))
        #expect(values.popDue(now: .milliseconds(999)) == nil)
        #expect(values.popDue(now: .seconds(2)) == 1)
        #expect(values.popDue(now: .seconds(2)) == 2)
        #expect(values.popDue(now: .seconds(2)) == nil)
        #expect(values.remove("c") == 3)
        #expect(values.popDue(now: .seconds(9)) == nil)
        #expect(values.isEmpty)
    }

    @Test func `a key has its last value`() {
        var values = DelayedValues<String, Int>()
        values.insert(1, for: "a", dueAt: .seconds(1))
        values.insert(2, for: "a", dueAt: .seconds(5))
        #expect(values.popDue(now: .seconds(4)) == nil)
        #expect(values.popDue(now: .seconds(5)) == 2)
        #expect(values.popDue(now: .seconds(5)) == nil)
    }
}
