// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct MemoryBudgetTests {
    private func victims(_ holdings: [(String, Int)], toFree bytes: Int) -> [String] {
        let named = holdings.map { (consumer: String($0.0.prefix(1)), bytes: $0.1) }
        return MemoryReclaim.victims(of: named, toFree: bytes).map { holdings[$0].0 }.sorted()
    }

    @Test func `the one who holds the most pays first`() {
        #expect(victims([("a", 100), ("b", 20), ("c", 30)], toFree: 10) == ["a"])
        #expect(victims([("a", 100), ("b", 90), ("c", 30)], toFree: 100) == ["a", "b"])
        #expect(victims([("a", 100), ("b", 20)], toFree: 0).isEmpty)
        #expect(victims([], toFree: 10).isEmpty)
    }

    @Test func `many small holdings of one consumer are one large one`() {
        let many = (1...1_000).map { ("a\($0)", 10) }
        let paying = victims(many + [("b", 1_000)], toFree: 5_000)
        #expect(paying.count == 500)
        #expect(!paying.contains("b"))
    }

    @Test func `a consumer gives up its largest holdings`() {
        #expect(victims([("a1", 10), ("a2", 500), ("a3", 20), ("b", 100)], toFree: 400) == ["a2"])
    }

    @Test func `if all have to go, all are named`() {
        #expect(victims([("a", 10), ("b", 20)], toFree: 1_000) == ["a", "b"])
    }

    @Test func `nobody pays who holds less than is left to those who do`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let holdings = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                (consumer: Int.random(in: 0..<8, using: &random), bytes: Int.random(in: 1...1_000, using: &random))
            }
            let total = holdings.reduce(0) { $0 + $1.bytes }
            let wanted = Int.random(in: 1...total, using: &random)
            let chosen = Set(MemoryReclaim.victims(of: holdings, toFree: wanted))
            let freed = chosen.reduce(0) { $0 + holdings[$1].bytes }
            #expect(freed >= wanted)
            var before: [Int: Int] = [:]
            for holding in holdings { before[holding.consumer, default: 0] += holding.bytes }
            let paying = Set(chosen.map { holdings[$0].consumer })
            let poorest = paying.compactMap { before[$0] }.min() ?? 0
            let spared = before.filter { !paying.contains($0.key) }
            #expect(spared.allSatisfy { $0.value <= poorest })
        }
    }

    @Test func `one caller at a time is told to see to it`() {
        let budget = MemoryBudget(limit: 800)
        #expect(!budget.change(by: 800))
        #expect(budget.change(by: 1))
        #expect(!budget.change(by: 100))
        #expect(budget.excess == 201)
        budget.reclaimEnded()
        #expect(budget.change(by: 0))
        budget.reclaimEnded()
        #expect(!budget.change(by: -500))
        #expect(budget.used == 401)
        #expect(budget.excess == 0)
    }
}
