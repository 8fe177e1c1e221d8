// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension ConnectionEngine {
    /// The requests that wait for their answers, by id; ids grow, so that their order is the order of sending.
    struct RequestTable<Request, Waiter> {
        /// What becomes of a request whose connection ended before its answer came.
        enum Replay: Hashable, Sendable {
            /// It fails: whether the server carried it out is not known.
            case never
            /// It is sent again: carrying it out twice does no harm, or the server notices.
            case always
        }

        struct Entry {
            let request: Request
            let replay: Replay
            let deadline: NIODeadline
            let waiter: Waiter
            /// Written to the present connection.
            var isWritten = false
            /// How many bytes it took there.
            var writtenBytes = 0
            /// How many connections the server ended for a breach of the protocol while this was the longest unanswered.
            var strikes = 0
        }

        private var entries: [UInt64: Entry] = [:]
        private var lastID: UInt64 = 15
        /// No entry's deadline is before this.
        private(set) var nextDeadline: NIODeadline?

        var isEmpty: Bool { entries.isEmpty }
        var count: Int { entries.count }

        /// Adds a request.
        ///
        /// - Returns: its id, at least 16.
        mutating func insert(_ request: Request, replay: Replay, deadline: NIODeadline, waiter: Waiter) -> UInt64 {
            lastID &+= 1
            entries[lastID] = Entry(request: request, replay: replay, deadline: deadline, waiter: waiter)
            nextDeadline = min(nextDeadline ?? deadline, deadline)
            return lastID
        }

        /// Takes a request out, because it is answered or no longer wanted.
        mutating func remove(_ id: UInt64) -> Entry? {
            let entry = entries.removeValue(forKey: id)
            if entries.isEmpty { nextDeadline = nil }
            return entry
        }

        /// After so many strikes a request is given up: sent again, it would end every connection.
        static var maxStrikes: Int { 2 }

        /// The request was written to the present connection, in so many bytes.
        mutating func markWritten(_ id: UInt64, bytes: Int = 0) {
            entries[id]?.isWritten = true
            entries[id]?.writtenBytes = bytes
        }

        /// The server ends the connection because of what was sent, and does not say which request that was: the longest
        /// one is the likeliest.
        ///
        /// - Parameter isSure: the server says that a frame was too long.
        /// - Returns: the request, taken out, if it is to be given up.
        mutating func blameLongest(isSure: Bool) -> (id: UInt64, entry: Entry)? {
            let written = entries.filter { $0.value.isWritten }
            guard
                let id = written.max(by: { ($0.value.writtenBytes, $1.key) < ($1.value.writtenBytes, $0.key) })?.key,
                var entry = entries[id]
            else { return nil }
            entry.strikes += 1
            entries[id] = entry
            guard isSure || entry.strikes >= Self.maxStrikes else { return nil }
            return remove(id).map { (id, $0) }
        }

        /// What is to be written once the connection is live, in order.
        func unwritten() -> [(id: UInt64, request: Request)] {
            entries.filter { !$0.value.isWritten }.sorted { $0.key < $1.key }.map { ($0.key, $0.value.request) }
        }

        /// The connection is gone.
        ///
        /// - Returns: the requests that fail with it, in order; the others wait for the next connection.
        mutating func connectionLost() -> [Entry] {
            let failed = entries.filter { $0.value.isWritten && $0.value.replay == .never }.sorted { $0.key < $1.key }
            for (id, _) in failed { entries[id] = nil }
            for id in entries.keys { entries[id]?.isWritten = false }
            if entries.isEmpty { nextDeadline = nil }
            return failed.map(\.value)
        }

        /// Takes out whose time is up, in order.
        mutating func expired(now: NIODeadline) -> [(id: UInt64, entry: Entry)] {
            guard let nextDeadline, nextDeadline <= now else { return [] }
            let expired = entries.filter { $0.value.deadline <= now }.sorted { $0.key < $1.key }
            for (id, _) in expired { entries[id] = nil }
            self.nextDeadline = entries.values.map(\.deadline).min()
            return expired.map { ($0.key, $0.value) }
        }

        /// Takes out all, in order.
        mutating func removeAll() -> [Entry] {
            defer {
                entries = [:]
                nextDeadline = nil
            }
            return entries.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}
