// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The callers that wait until the last session of an owner is removed. ``DurableState`` owns them.
struct DurableFarewells {
    typealias Waiter = @Sendable (Result<Void, HermesError>) -> Void

    private var waiting: [SessionOwner: [Waiter]] = [:]
    private var failed: [(waiter: Waiter, error: HermesError)] = []

    var isEmpty: Bool { waiting.isEmpty && failed.isEmpty }

    mutating func wait(for owner: SessionOwner, _ waiter: @escaping Waiter) {
        waiting[owner, default: []].append(waiter)
    }

    /// Fails the callers that wait for an owner, because one of its sessions could not be removed now.
    mutating func fail(_ owner: SessionOwner, _ error: HermesError) {
        for waiter in waiting.removeValue(forKey: owner) ?? [] { failed.append((waiter, error)) }
    }

    mutating func failAll(_ error: HermesError) {
        for owner in Array(waiting.keys) { fail(owner, error) }
    }

    /// Removes the callers that can be answered now, and returns the calls that answer them. These calls are made
    /// outside the lock.
    ///
    /// - Parameter isLeft: returns whether an owner still has a session.
    mutating func take(isLeft: (SessionOwner) -> Bool) -> [@Sendable () -> Void] {
        var calls: [@Sendable () -> Void] = failed.map { failure in { failure.waiter(.failure(failure.error)) } }
        failed = []
        for (owner, waiters) in waiting where !isLeft(owner) {
            waiting[owner] = nil
            calls += waiters.map { waiter in { waiter(.success(())) } }
        }
        return calls
    }
}

extension DurableState {
    /// Whether an owner has a session that is stored or is about to be stored.
    func isAnyStored(of owner: SessionOwner) -> Bool {
        seats.keys(of: owner).contains { key in
            guard let seat = seats[key] else { return false }
            if case .opening = seat.phase { return true }
            return seat.session.isStored || seat.waiting != nil
        }
    }

    mutating func takeFarewells() -> [@Sendable () -> Void] {
        guard !farewells.isEmpty else { return [] }
        var farewells = farewells
        defer { self.farewells = farewells }
        return farewells.take(isLeft: isAnyStored)
    }
}
