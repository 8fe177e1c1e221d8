// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// How much all connections together may have sent before they are authenticated. Where it is too much, the connection
/// that has sent most is closed, then the next, until it is not.
///
/// State: one `Mutex` around a heap; taken once a read of a connection that is not authenticated, and once when it is or
/// has ended. Nothing is called under it.
package final class LoginBudget: Sendable {
    /// What one connection has sent. Its state belongs to the budget's lock.
    package final class Share: @unchecked Sendable {  // Guarded by the budget's lock, but for `end`.
        fileprivate var bytes = 0
        fileprivate var place: Int?
        fileprivate var isOver = false
        /// Closes the connection; called on the thread of whoever sent too much.
        fileprivate let end: @Sendable () -> Void

        fileprivate init(end: @escaping @Sendable () -> Void) { self.end = end }
    }

    /// Which share has most, found at once: a heap whose entries know their places.
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

    /// - Parameter limit: the most that all may have sent, in bytes.
    package init(limit: Int) { self.limit = limit }

    /// What those have sent that are not authenticated now, in bytes.
    package var bytes: Int { shares.withLock { $0.total } }

    /// A connection has sent its first bytes.
    ///
    /// - Parameter end: closes it; called on any thread.
    package func share(end: @escaping @Sendable () -> Void) -> Share { Share(end: end) }

    /// A connection has sent more.
    package func charge(_ bytes: Int, to share: Share) {
        let over: [Share] = shares.withLock { shares in
            guard !share.isOver else { return [] }
            shares.add(bytes, to: share)
            var over: [Share] = []
            while shares.total > limit, let most = shares.heap.first {
                shares.remove(most)
                most.isOver = true
                over.append(most)
            }
            return over
        }
        for share in over { share.end() }
    }

    /// The connection is authenticated, or has ended.
    package func release(_ share: Share) { shares.withLock { $0.remove(share) } }
}
