// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits the bytes that all unauthenticated connections together may have sent. Above the limit, the connection that
/// has sent the most is closed, then the next one, until the total is within the limit.
///
/// State: one `Mutex` around a heap. It is taken once per read of an unauthenticated connection, and once when the
/// connection logs in or ends. No other code is called while it is held.
package final class LoginBudget: Sendable {
    /// The bytes that one connection has sent; guarded by the budget's lock.
    package final class Share: @unchecked Sendable {  // Guarded by the budget's lock, except `end`.
        fileprivate var bytes = 0
        fileprivate var place: Int?
        fileprivate var isOver = false
        /// Closes the connection; called on the thread of the connection that exceeded the limit.
        fileprivate let end: @Sendable () -> Void

        fileprivate init(end: @escaping @Sendable () -> Void) { self.end = end }
    }

    /// A heap of shares, in which the largest share is found at once. Each share records its index in the heap.
    private struct Shares {
        var total = 0
        var heap: [Share] = []

        mutating func add(_ bytes: Int, to share: Share) {
            share.bytes += bytes
            total += bytes
            let place = share.place ?? heap.count
            if share.place == nil {
                share.place = place
                heap.append(share)
            }
            rise(from: place)
        }

        mutating func remove(_ share: Share) {
            guard let place = share.place else { return }
            total -= share.bytes
            share.place = nil
            let last = heap.removeLast()
            guard last !== share else { return }
            put(last, at: place)
            rise(from: place)
            sink(from: last.place ?? place)
        }

        private mutating func put(_ share: Share, at place: Int) {
            heap[place] = share
            share.place = place
        }

        private mutating func rise(from place: Int) {
            var place = place
            let share = heap[place]
            while place > 0, heap[(place - 1) / 2].bytes < share.bytes {
                put(heap[(place - 1) / 2], at: place)
                place = (place - 1) / 2
            }
            put(share, at: place)
        }

        private mutating func sink(from place: Int) {
            var place = place
            let share = heap[place]
            while 2 * place + 1 < heap.count {
                var child = 2 * place + 1
                if child + 1 < heap.count, heap[child + 1].bytes > heap[child].bytes { child += 1 }
                guard heap[child].bytes > share.bytes else { break }
                put(heap[child], at: place)
                place = child
            }
            put(share, at: place)
        }
    }

    private let limit: Int
    private let shares = Mutex(Shares())

    /// - Parameter limit: the largest number of bytes that all unauthenticated connections together may have sent.
    package init(limit: Int) { self.limit = limit }

    /// The bytes of all unauthenticated connections.
    package var bytes: Int { shares.withLock { $0.total } }

    /// Creates the share of a connection that has sent its first bytes.
    ///
    /// - Parameter end: closes the connection; called on any thread.
    package func share(end: @escaping @Sendable () -> Void) -> Share { Share(end: end) }

    /// Counts bytes that a connection has sent.
    ///
    /// - Returns: false if this connection has to end. The connection may not have been notified yet.
    @discardableResult
    package func charge(_ bytes: Int, to share: Share) -> Bool {
        let (over, mayStay): ([Share], Bool) = shares.withLock { shares in
            guard !share.isOver else { return ([], false) }
            shares.add(bytes, to: share)
            var over: [Share] = []
            while shares.total > limit, let most = shares.heap.first {
                shares.remove(most)
                most.isOver = true
                over.append(most)
            }
            return (over, !share.isOver)
        }
        for share in over { share.end() }
        return mayStay
    }

    /// Subtracts the bytes of a connection that has logged in or ended.
    package func release(_ share: Share) { shares.withLock { $0.remove(share) } }
}
