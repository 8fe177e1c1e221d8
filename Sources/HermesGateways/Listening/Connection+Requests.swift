// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOCore

/// Slow requests: asynchronous calls to the core.
extension Connection {
    /// Calls the core asynchronously. Nothing is read from the connection until the result arrives, so that answers
    /// keep their order and each connection has at most one slow request.
    ///
    /// - Parameters:
    ///   - bytes: returns the number of bytes that were read from the store for the answer. They are charged.
    ///   - reach: returns the reach of the change. It is charged even if the connection has ended meanwhile.
    ///   - then: gets the result on the loop; not called if the connection has ended meanwhile.
    package func ask<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(HermesError) -> Value,
        reading bytes: @escaping (Value) -> Int = { _ in 0 },
        causing reach: @escaping (Value) -> ChangeReach = { _ in .nobody },
        then: @escaping (Result<Value, HermesError>) -> Void
    ) {
        charge(.lookup)
        hold()
        let loop = loop
        let then = loop.bound((then, bytes, reach))
        // The work runs in its own task because the event loop cannot wait. The hold limits each connection to one
        // such task.
        Task {
            let result: Result<Value, HermesError>
            do throws(HermesError) {
                result = .success(try await work())
            } catch {
                result = .failure(error)
            }
            loop.post(.run { self.answered(then.value, result) })
        }
    }

    /// Calls the core like the other `ask`, but the work reports its result to a completion. An example is a change
    /// that is committed together with other changes.
    ///
    /// - Parameter cost: the cost of the request, which is charged at once.
    package func ask<Value: Sendable>(
        costing cost: RequestCost = .change,
        completing work: (@escaping @Sendable (Result<Value, HermesError>) -> Void) -> Void,
        reading bytes: @escaping (Value) -> Int = { _ in 0 },
        causing reach: @escaping (Value) -> ChangeReach = { _ in .nobody },
        then: @escaping (Result<Value, HermesError>) -> Void
    ) {
        charge(cost)
        hold()
        let loop = loop
        let then = loop.bound((then, bytes, reach))
        work { result in
            loop.post(.run { self.answered(then.value, result) })
        }
    }

    /// Handles many items, a slice of them in each turn of the loop, so that no other connection waits for all of them.
    /// Nothing is read from the peer meanwhile. If the connection ends, the remaining items are not handled.
    ///
    /// - Parameters:
    ///   - count: the number of items. Up to `size` items are handled at once, before this returns.
    ///   - size: the number of items that are handled in one turn.
    ///   - body: gets the indices of the next slice.
    ///   - finish: called after all items are handled.
    package func inSlices(
        _ count: Int,
        of size: Int,
        _ body: @escaping (Range<Int>) -> Void,
        then finish: @escaping () -> Void
    ) {
        guard count > size else {
            if count > 0 { body(0..<count) }
            if isOpen { finish() }
            return
        }
        hold()
        slice(SlicedWork(count, body), of: size, then: finish)
    }

    private func slice(_ work: SlicedWork, of size: Int, then finish: @escaping () -> Void) {
        guard isOpen else { return release() }
        var work = work
        work.step(atMost: size)
        guard work.isDone else { return loop.inTurn { self.slice(work, of: size, then: finish) } }
        if isOpen { finish() }
        release()
    }

    private func answered<Value>(
        _ asked: (
            then: (Result<Value, HermesError>) -> Void, bytes: (Value) -> Int, reach: (Value) -> ChangeReach
        ),
        _ result: Result<Value, HermesError>
    ) {
        var bytes = 0
        if case .success(let value) = result {
            bytes = asked.bytes(value)
            chargeRead(bytes)
            chargeReached(asked.reach(value))
        }
        whenRoom(holding: bytes) { [self] in
            if isOpen { asked.then(result) }
            release()
        }
    }
}
