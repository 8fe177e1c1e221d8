// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReceiptPromiseTests {
    @Test
    func `a client that stops before a waiter waits ends its wait`() async {
        let promise = ReceiptPromise()
        let waiter = promise.announce()
        promise.interrupt(HermesClientError(.closed, "stopped"))
        await #expect(throws: HermesClientError.self) { try await promise.wait(as: waiter) }
    }

    @Test
    func `one that stops later ends it, too, but not the waits that are announced after that`() async throws {
        let promise = ReceiptPromise()
        let first = promise.announce()
        async let outcome = { () async -> Bool in (try? await promise.wait(as: first)) == nil }()
        // The task may or may not be waiting already.
        await Task.yield()
        promise.interrupt(HermesClientError(.closed, "stopped"))
        #expect(await outcome)
        let second = promise.announce()
        async let error = { () async -> HermesClientError? in
            do {
                _ = try await promise.wait(as: second)
                return nil
            } catch {
                return error as? HermesClientError
            }
        }()
        promise.resolve(.failure(HermesClientError(.discarded, "gone")))
        #expect(await error?.code == .discarded)
    }

    @Test
    func `a task that is cancelled before it waits does not wait`() async {
        let promise = ReceiptPromise()
        let task = Task {
            let waiter = promise.announce()
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await promise.wait(as: waiter)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
