// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct FairQueueTests {
    private let flooder = CommitSource(host: "10.0.0.1")
    private let other = CommitSource(account: "ann")

    @Test func sourcesTakeTurnsAndKeepTheirOrder() {
        var queue = FairQueue<String>()
        for number in 0..<1000 { queue.append("f\(number)", bytes: 10, of: flooder) }
        for number in 0..<3 { queue.append("o\(number)", bytes: 10, of: other) }
        queue.append("s", bytes: 1, of: .server)
        #expect(queue.take(maxCount: 8, maxBytes: .max) == ["f0", "o0", "s", "f1", "o1", "f2", "o2", "f3"])
        #expect(queue.waiting(of: flooder).count == 996)
        #expect(queue.waiting(of: flooder).bytes == 9960)
        #expect(queue.waiting(of: other).count == 0)
        queue.append("o3", bytes: 10, of: other)
        #expect(queue.take(maxCount: 3, maxBytes: .max) == ["f4", "o3", "f5"])
        #expect(queue.count == 994)
        #expect(queue.take(maxCount: .max, maxBytes: .max) == (6..<1000).map { "f\($0)" })
        #expect(queue.isEmpty)
        #expect(queue.take(maxCount: 1, maxBytes: 1) == [])
    }

    @Test func aBatchIsBoundedByBytesAndHoldsOneAtLeast() {
        var queue = FairQueue<Int>()
        for number in 0..<5 { queue.append(number, bytes: 100, of: flooder) }
        #expect(queue.take(maxCount: 9, maxBytes: 1) == [0])
        #expect(queue.take(maxCount: 9, maxBytes: 200) == [1, 2])
    }
}
