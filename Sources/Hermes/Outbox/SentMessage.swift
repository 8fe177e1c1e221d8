// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// A message that is in the store and on its way to the server.
///
/// ```swift
/// let sent = try await client.send("hello", to: .user(bob.uid))   // returns at once, offline too
/// showClock(sent.id)
/// let receipt = try await sent.receipt()                          // once the server has it
/// showTick(sent.id, receipt.date)
/// ```
public struct SentMessage: Sendable, Identifiable {
    /// The client id, which identifies the message from the start. The entries of ``Outbox/changes`` have the same id.
    public let id: String
    let promise: ReceiptPromise
    let outbox: Outbox

    /// Waits until the server has committed the message, however long that takes. This method may be called more than
    /// once.
    ///
    /// - Throws: HermesClientError: the permanent refusal of the message, `.discarded`, or the reason why the client
    ///   stopped. If the client stopped, the message stays in the outbox. CancellationError if the task is cancelled.
    ///   The message is then still sent.
    @discardableResult
    public func receipt() async throws -> Receipt { try await outbox.receipt(of: promise) }
}

/// The receipt of a message, which may not have arrived yet.
///
/// A lock protects the state.
final class ReceiptPromise: Sendable {
    private struct State {
        var result: Result<Receipt, HermesClientError>?
        var waiters: [UInt64: CheckedContinuation<Receipt, any Error>] = [:]
        var lastWaiter: UInt64 = 0
        /// The waiters that are announced and do not wait yet.
        var announced: Set<UInt64> = []
        /// The errors for waiters whose waits ended before they began.
        var endedEarly: [UInt64: any Error] = [:]
    }

    private let state = NIOLockedValueBox(State())

    var isResolved: Bool { state.withLockedValue { $0.result != nil } }

    /// Announces a waiter. The caller must then call ``wait(as:)``. From now on, a call that ends all waits also ends
    /// this waiter's wait.
    func announce() -> UInt64 {
        state.withLockedValue { state in
            state.lastWaiter &+= 1
            state.announced.insert(state.lastWaiter)
            return state.lastWaiter
        }
    }

    /// Waits for the result.
    func wait(as id: UInt64) async throws -> Receipt {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = state.withLockedValue { state -> Result<Receipt, any Error>? in
                    state.announced.remove(id)
                    let end = state.endedEarly.removeValue(forKey: id)
                    if let result = state.result { return result.mapError { $0 as any Error } }
                    if let end { return .failure(end) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let ready { continuation.resume(with: ready) }
            }
        } onCancel: {
            let waiter = state.withLockedValue { state in
                if state.announced.contains(id) { state.endedEarly[id] = CancellationError() }
                return state.waiters.removeValue(forKey: id)
            }
            waiter?.resume(throwing: CancellationError())
        }
    }

    /// Ends all waits, because the message was committed, refused permanently or discarded.
    func resolve(_ result: Result<Receipt, HermesClientError>) {
        let waiters = state.withLockedValue { state in
            if state.result == nil { state.result = result }
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(with: result.mapError { $0 as any Error }) }
    }

    /// Ends all waits, because there will be no result before the next login.
    func interrupt(_ error: any Error) {
        let waiters = state.withLockedValue { state in
            defer { state.waiters = [:] }
            for id in state.announced { state.endedEarly[id] = error }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(throwing: error) }
    }
}
