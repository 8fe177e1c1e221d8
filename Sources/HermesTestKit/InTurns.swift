// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
package import Testing

/// The trait of suites that take real time, because they use the network, the disk or a time limit. Only a few such
/// suites run at a time, and each runs one test at a time. So the time that a test needs does not depend on the number
/// of tests.
package struct InTurnsTrait: SuiteTrait, TestScoping {
    /// Two suites run for each processor, so that one can work while the other waits.
    private static let turns = Turns(2 * ProcessInfo.processInfo.activeProcessorCount)

    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        await Self.turns.take()
        defer { Self.turns.give() }
        try await ParallelizationTrait.serialized.provideScope(for: test, testCase: testCase, performing: function)
    }
}

extension Trait where Self == InTurnsTrait { package static var inTurns: Self { Self() } }

/// A semaphore that suspends the waiting tasks.
private final class Turns: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    func take() async {
        await withCheckedContinuation { continuation in
            let mayRun = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if mayRun { continuation.resume() }
        }
    }

    func give() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
