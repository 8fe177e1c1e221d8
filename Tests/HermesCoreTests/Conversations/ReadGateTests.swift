// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReadGateTests {
    private let first = CommitSource.subject("first")
    private let second = CommitSource.subject("second")

    @Test
    func `those who read take turns, whoever asks for more`() async {
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

    @Test
    func `one that asks for too much is refused, and leaves room for others`() async {
        let gate = ReadGate(maxRunning: 1, maxWaiting: 80)
        let (mayGo, go) = AsyncStream<Void>.makeStream()
        #expect(gate.run(for: first) { for await _ in mayGo { return } })
        let accepted = (0..<50).count { _ in gate.run(for: first) {} }
        #expect(accepted == 10)
        #expect(gate.run(for: second) {})
        go.yield()
    }

    @Test
    func `tasks and reads that nobody waits for take turns at the same places; each place is free in the end`()
        async throws
    {
        let gate = ReadGate(maxRunning: 2, maxWaiting: 1_000)
        let most = Mutex([0, 0])
        let sum = Mutex(0)
        @Sendable func visit() async {
            // The first number is the current count, and the second is the largest count.
            most.withLock { $0 = [$0[0] + 1, max($0[1], $0[0] + 1)] }
            await Task.yield()
            most.withLock { $0[0] -= 1 }
            sum.withLock { $0 += 1 }
        }
        let sources = [first, second, CommitSource.server]
        await withTaskGroup(of: Void.self) { tasks in
            for number in 0..<60 {
                let source = sources[number % sources.count]
                tasks.addTask { @Sendable in
                    _ = try? await gate.turn(of: source) { () async throws(HermesError) in await visit() }
                }
                tasks.addTask { @Sendable in
                    await withCheckedContinuation { continuation in
                        let isAccepted = gate.run(for: source) {
                            await visit()
                            continuation.resume()
                        }
                        if !isAccepted { continuation.resume() }
                    }
                }
            }
        }
        while gate.running > 0 { await Task.yield() }
        #expect(most.withLock { $0[1] } <= 2)
        #expect(sum.withLock { $0 } == 120)
    }

    @Test
    func `a task that finds no room is refused at once, and its error frees the place of one that ran`() async throws {
        let gate = ReadGate(maxRunning: 1, maxWaiting: 8)
        await #expect(throws: HermesError.self) {
            try await gate.turn(of: first) { () async throws(HermesError) in throw ReadGate.tooManyReads }
        }
        let (mayGo, go) = AsyncStream<Void>.makeStream()
        async let held: Void? = try? gate.turn(of: first) { () async throws(HermesError) in for await _ in mayGo {} }
        while gate.running == 0 { await Task.yield() }
        // An eighth of the room for waiting reads is one place.
        async let waiting: Int? = try? gate.turn(of: second) { () async throws(HermesError) in 7 }
        while gate.waiting(of: second) == 0 { await Task.yield() }
        await #expect { try await gate.turn(of: second) { () async throws(HermesError) in } } throws: {
            ($0 as? HermesError)?.code == .overloaded
        }
        go.finish()
        _ = await held
        #expect(await waiting == 7)
    }
}
