// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

struct ShapeBudgetTests {
    private let owner = CommitSource(host: "10.0.0.1")
    private let other = CommitSource(host: "10.0.0.2")

    /// Returns a filter whose levels are `a`, with `+` at the places where the number has a bit.
    private func filter(_ bits: Int, levels: Int = 12) -> String {
        (0..<levels).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/")
    }

    @Test(arguments: [
        "a", "a/b/c", "#", "+", "a/+/c", "+/+", "a/+/b/+/#", "$share/g/a/+/+/#",
        String(repeating: "a/", count: 127) + "#", String(repeating: "a/", count: 15) + "+",
    ])
    func `filters with few wildcards cost nothing`(_ filter: String) throws {
        #expect(!TopicShape(of: filter).isCostly)
        let budget = ShapeBudget(SharedLimit(0))
        #expect(ShapeLease(budget, of: owner).take(TopicShape(of: filter)))
    }

    @Test(arguments: [
        ("+/+/+", 3), ("a/+/+/+/#", 5), ("$share/g/+/b/+/+", 4), (String(repeating: "a/", count: 16) + "+", 17),
    ])
    func `the levels of the others count once, whoever has them`(_ filter: String, _ levels: Int) {
        let shape = TopicShape(of: filter)
        #expect(shape.isCostly)
        let budget = ShapeBudget(SharedLimit(2 * levels))
        let (first, second) = (ShapeLease(budget, of: owner), ShapeLease(budget, of: other))
        #expect(first.take(shape) && second.take(shape) && second.take(shape))
        #expect(budget.levels == levels)
        first.giveBack(shape)
        second.giveBack(shape)
        #expect(budget.levels == levels)
        second.giveBack(shape)
        // The shape is given back more often than it was taken, and nothing happens.
        second.giveBack(shape)
        #expect(budget.levels == 0)
    }

    @Test func `the parts of a filter count alike in a lease, a subscription's text and an index`() throws {
        let budget = ShapeBudget()
        let text = "$share/group/+/+/b/+"
        let lease = ShapeLease(budget, of: owner)
        #expect(lease.take(try #require(TopicFilter.withShape("+/+/b/+")).shape.shared))
        var index = DurableIndex(shapes: budget)
        let subscription = DurableSubscription(filter: text, options: SubscriptionOptions(qos: .atLeastOnce))
        index.insert(DurableSessionID(rawValue: 1), subscription, payer: other)
        // The same filter is added again, with another payer.
        index.insert(DurableSessionID(rawValue: 2), subscription, payer: owner)
        lease.giveBack(TopicShape(of: text))
        #expect(budget.levels == 4, "the kept session has it")
        index.remove(DurableSessionID(rawValue: 1), text)
        #expect(budget.levels == 4)
        index.remove(DurableSessionID(rawValue: 2), text)
        #expect(budget.levels == 0)
    }

    @Test func `members of an index that come and go leave nothing behind`() {
        let budget = ShapeBudget()
        var index = DurableIndex(shapes: budget)
        let (plain, shared) = ("+/+/+", "$share/group/+/+/+")
        func subscription(_ filter: String) -> DurableSubscription {
            DurableSubscription(filter: filter, options: SubscriptionOptions(qos: .atLeastOnce))
        }
        let first = DurableSessionID(rawValue: 1)
        index.insert(first, subscription(plain), payer: other)
        for number in 2...1_001 {
            let id = DurableSessionID(rawValue: Int64(number))
            for filter in [plain, shared] { index.insert(id, subscription(filter), payer: owner) }
            for filter in [plain, shared] { index.remove(id, filter) }
        }
        #expect(index.payerCount == 1 && budget.levels == 3)
        // One session has the filter twice, and each of the two is given back only once.
        index.insert(first, subscription(shared), payer: other)
        #expect(index.payerCount == 2)
        index.remove(first, plain)
        index.remove(first, plain)
        #expect(index.payerCount == 1 && budget.levels == 3)
        index.remove(first, shared)
        #expect(index.payerCount == 0 && budget.levels == 0)
    }

    @Test func `no topic costs a search more than the budget, whoever brings the shapes`() throws {
        let budget = ShapeBudget(SharedLimit(600, perAccount: 300, perAddress: 300))
        let leases = (0..<8).map { ShapeLease(budget, of: CommitSource(host: "10.0.0.\($0)")) }
        var tree = TopicTree()
        var refused = 0
        for bits in 0..<4_096 {
            let text = filter(bits)
            guard leases[bits % 8].take(TopicShape(of: text)) else {
                refused += 1
                continue
            }
            tree.insert(try #require(TopicFilter(text)), value: UInt32(bits))
        }
        #expect(refused > 3_900 && budget.levels <= 600)
        let topic = try #require(TopicName(filter(0)))
        let steps = tree.forEachMatch(of: topic) { _ in }
        // Each shape that is not costly has a path of at most 12 levels. None, one or two of these levels are `+`.
        #expect(steps <= 600 + 1 + 12 * 13 / 2 + 12 * (12 * 11 / 2))
    }

    @Test func `a filter of another depth is another shape, and its owner pays`() {
        let budget = ShapeBudget(SharedLimit(40, perAddress: 10))
        let (first, second) = (ShapeLease(budget, of: owner), ShapeLease(budget, of: other))
        #expect(first.take(TopicShape(of: "+/+/+")))
        #expect(second.take(TopicShape(of: "+/+/+/d/e")))
        #expect(budget.levels == 8)
        #expect(first.take(TopicShape(of: "a/+/+/+/c/d/e")), "the first has 7 left")
        #expect(!second.take(TopicShape(of: "+/+/+" + String(repeating: "/x", count: 10))))
    }

    @Test func `one who has a shape pays for it, even if another brought it and has left`() {
        let budget = ShapeBudget(SharedLimit(40, perAddress: 10))
        let (first, second) = (ShapeLease(budget, of: owner), ShapeLease(budget, of: other))
        let shape = TopicShape(of: "+/+/+/4/5/6")
        #expect(first.take(shape) && second.take(shape))
        let next = TopicShape(of: "1/+/+/+/5/6")
        #expect(!first.take(next) && second.take(next), "the first pays for six levels, the second for none")
        second.giveBack(next)
        first.giveBack(shape)
        #expect(budget.levels == 6)
        #expect(first.take(next) && !second.take(TopicShape(of: "1/2/+/+/+/6")), "now the second pays")
    }

    @Test func `an owner leaves room for others, and what a client has is given back with it`() throws {
        let budget = ShapeBudget(SharedLimit(120, perAccount: 60, perAddress: 60))
        var lease: ShapeLease? = ShapeLease(budget, of: owner)
        var taken = 0
        for bits in 0..<4_096 where bits.nonzeroBitCount > 2 {
            if lease?.take(TopicShape(of: filter(bits))) == true { taken += 1 }
        }
        #expect(taken >= 2 && budget.levels <= 60)
        let newcomer = ShapeLease(budget, of: .account(try user(1)))
        #expect(newcomer.take(TopicShape(of: "+/+/+")))
        // The shapes of an earlier connection are added, whether there is room for them or not.
        let late = ShapeLease(budget, of: owner)
        for bits in 100..<200 { late.add(TopicShape(of: filter(bits))) }
        #expect(budget.levels > 120)
        lease = nil
        withExtendedLifetime(late) { #expect(budget.levels > 120) }
    }

    @Test func `a lease gives everything back at its end`() {
        let budget = ShapeBudget()
        do {
            let lease = ShapeLease(budget, of: owner)
            for bits in 0..<64 { lease.add(TopicShape(of: filter(bits))) }
            #expect(budget.levels > 0)
        }
        #expect(budget.levels == 0)
    }

    @Test func `by default there is room for 16,384 levels, of which one owner gets 2,048`() throws {
        let budget = ShapeBudget()
        let costly = (0..<65_536).filter { $0.nonzeroBitCount > 2 }
        var shapes = costly.prefix(2_000).map { TopicShape(of: filter($0, levels: 16)) }[...]
        func takeAll(of owner: CommitSource) -> ShapeLease {
            let lease = ShapeLease(budget, of: owner)
            while let shape = shapes.popFirst(), lease.take(shape) {}
            return lease
        }
        let address = takeAll(of: owner)
        #expect(budget.levels == 2_048)
        let account = takeAll(of: .account(try user(1)))
        #expect(budget.levels == 4_096)
        // The server has no share, so only the total limits it.
        let server = takeAll(of: .server)
        #expect(budget.levels == 16_384)
        withExtendedLifetime([address, account, server]) {}
    }
}

extension DurableIndex {
    /// The number of members of filters with costly shapes.
    fileprivate var payerCount: Int { entries.reduce(0) { $0 + $1.payers.count } }
}
