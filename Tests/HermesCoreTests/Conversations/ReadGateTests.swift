// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite(.timeLimit(.minutes(1))) struct ReadGateTests {
    private let first = CommitSource.subject("first")
    private let second = CommitSource.subject("second")

    @Test("Those who read take turns, whoever asks for more")
    func turns() async {
        let gate = ReadGate(maxRunning: 1, maxWaiting: 1_000)
        let (mayGo, go) = AsyncStream<Void>.makeStream()
        let (done, end) = AsyncStream<String>.makeStream()
        var isAccepted = gate.run(for: first) { for await _ in mayGo { return } }
        for number in 0..<100 {
            isAccepted = gate.run(for: first) { end.yield("first \(number)") } && isAccepted
        }
        isAccepted = gate.run(for: second) { end.yield("second") } && isAccepted
        #expect(isAccepted)
        go.yield()
        var order: [String] = []
        for await one in done {
            order.append(one)
            if order.count == 101 { break }
        }
        #expect(order.firstIndex(of: "second").map { $0 <= 1 } == true)
        #expect(order.filter { $0 != "second" } == (0..<100).map { "first \($0)" })
    }

    @Test("One that asks for too much is refused, and leaves room for others")
    func room() async {
        let gate = ReadGate(maxRunning: 1, maxWaiting: 80)
        let (mayGo, go) = AsyncStream<Void>.makeStream()
        #expect(gate.run(for: first) { for await _ in mayGo { return } })
        let accepted = (0..<50).count { _ in gate.run(for: first) {} }
        #expect(accepted == 10)
        #expect(gate.run(for: second) {})
        go.yield()
    }
}
