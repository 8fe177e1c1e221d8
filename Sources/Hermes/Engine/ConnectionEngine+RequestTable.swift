// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension ConnectionEngine {
    /// The unanswered requests by id. Ids increase, so their order is the order of sending.
    package struct RequestTable<Request, Waiter> {
        /// The fate of a request whose connection ended before its answer.
        package enum Replay: Hashable, Sendable {
            /// If the request was written, it fails, because the server may have carried it out.
            case never
            /// The request is sent again. There are three reasons why this is safe: the server recognizes a
            /// repetition, a second execution does no harm, or the link recognizes the refusal of a repetition. See
            /// ``ConnectionLink/answer(toRepeated:refusedWith:)``.
            case always
        }

        struct Entry {
            let request: Request
            let replay: Replay
            let deadline: NIODeadline
            let waiter: Waiter
            /// Whether the request does not wait during a search for another request.
            let isUrgent: Bool
            /// Whether the request was written to the present connection.
            var isWritten = false
            /// Whether the request was written to an earlier connection.
            var isRepeated = false
            /// The request's length on the present connection, in bytes. The length is 0 if the link keeps the request
            /// and sends it by itself.
            var writtenBytes = 0
        }

        private var entries: [UInt64: Entry] = [:]
        private var lastID: UInt64 = 15
        /// The id of the last request that was in flight when the server ended a connection for a breach of the
        /// protocol; 0 if there is no search.
        private var lastSuspect: UInt64 = 0
        /// The id of the suspect that is sent first. If it is 0, the suspect with the lowest id is sent first.
        private var firstSuspect: UInt64 = 0
        /// The id of the request that was written last.
        private var lastWritten: UInt64 = 0
        /// The length of the longest request that was written to the present connection and abandoned before its
        /// answer; nil if there is none.
        private var abandonedBytes: Int?
        /// During a search, the time from which the next request no longer waits for the answer to the previous
        /// request; nil if no request waits.
        private(set) var nextTry: NIODeadline?
        /// The earliest deadline, or the earlier deadline of a request that has been removed; nil if there is no
        /// request.
        private(set) var nextDeadline: NIODeadline?

        var isEmpty: Bool { entries.isEmpty }
        var count: Int { entries.count }
        /// Whether requests are sent one at a time, because one of them may be the reason why the server ended the
        /// connection.
        var isSearching: Bool { lastSuspect > 0 }

        /// During a search, the longest time for which a request waits for the answer to the previous request.
        static var searchDelay: TimeAmount { .seconds(10) }

        /// Adds a request.
        ///
        /// - Parameter isUrgent: whether the request does not wait during a search for another request.
        /// - Returns: the request's id, at least 16.
        mutating func insert(
            _ request: Request,
            replay: Replay,
            deadline: NIODeadline,
            waiter: Waiter,
            isUrgent: Bool = false
        ) -> UInt64 {
            lastID &+= 1
            entries[lastID] = Entry(
                request: request,
                replay: replay,
                deadline: deadline,
                waiter: waiter,
                isUrgent: isUrgent
            )
            nextDeadline = min(nextDeadline ?? deadline, deadline)
            return lastID
        }

        /// Removes a request that is answered, or that could not be written.
        mutating func remove(_ id: UInt64) -> Entry? {
            let entry = entries.removeValue(forKey: id)
            if entries.isEmpty { nextDeadline = nil }
            return entry
        }

        /// Removes a request that is no longer wanted.
        mutating func abandon(_ id: UInt64) -> Entry? {
            guard let entry = remove(id) else { return nil }
            noteAbandoned(entry)
            return entry
        }

        /// Notes that a request was abandoned. If it was written, the server may still end the connection for it.
        private mutating func noteAbandoned(_ entry: Entry) {
            guard entry.isWritten else { return }
            abandonedBytes = max(abandonedBytes ?? 0, entry.writtenBytes)
        }

        /// Notes that the request was written to the present connection, with this length in bytes.
        mutating func markWritten(_ id: UInt64, bytes: Int = 0) {
            entries[id]?.isWritten = true
            entries[id]?.writtenBytes = bytes
            lastWritten = id
        }

        /// The length of the longest unanswered request on the present connection, in bytes; 0 if there is none.
        var longestBytes: Int {
            entries.values.reduce(abandonedBytes ?? 0) { $1.isWritten ? max($0, $1.writtenBytes) : $0 }
        }

        /// Handles a breach of the protocol for which the server ends the connection. The server does not say which
        /// request is the cause.
        ///
        /// If a frame was too long, the longest unanswered request fails. Otherwise, each request in flight may be the
        /// cause. These requests are then sent one at a time over the next connections. If only one request is in
        /// flight at a further breach, this request fails. If several requests are in flight at a further breach, the
        /// request that was written last is sent first over the next connection. If only one request is in flight at
        /// the first breach, it fails only if it must not be sent again.
        ///
        /// No request fails if an abandoned request may be the cause. A request with a length of 0 is not blamed,
        /// because the link sends it by itself.
        ///
        /// - Parameter isTooLong: whether the server says that a frame was too long.
        /// - Returns: the request that fails, after its removal; nil if no request fails.
        mutating func blame(isTooLong: Bool) -> (id: UInt64, entry: Entry)? {
            let written = entries.filter { $0.value.isWritten }
            let suspects = written.filter { $0.value.writtenBytes > 0 }
            let longest = suspects.max { ($0.value.writtenBytes, $1.key) < ($1.value.writtenBytes, $0.key) }
            if isTooLong {
                guard let longest, longest.value.writtenBytes > abandonedBytes ?? 0 else { return nil }
                return remove(longest.key).map { (longest.key, $0) }
            }
            if let longest, written.count == 1, abandonedBytes == nil, isSearching || longest.value.replay == .never {
                lastSuspect = 0
                return remove(longest.key).map { (longest.key, $0) }
            }
            if isSearching {
                firstSuspect = lastWritten
            } else {
                lastSuspect = suspects.keys.max() ?? 0
            }
            return nil
        }

        /// Returns the requests to write to a live connection, in order. During a search, a request is written when
        /// the previous request is answered or has waited for its answer for ``searchDelay``. Urgent requests do not
        /// wait. The search ends when each suspect is gone or has waited for its answer for ``searchDelay``.
        mutating func unwritten(now: NIODeadline) -> [(id: UInt64, request: Request)] {
            let waiting = entries.filter { !$0.value.isWritten }.sorted { $0.key < $1.key }
            let all = waiting.map { (id: $0.key, request: $0.value.request) }
            guard isSearching else { return all }
            let urgent = waiting.filter { $0.value.isUrgent }.map { (id: $0.key, request: $0.value.request) }
            guard urgent.isEmpty else { return urgent }
            if waiting.count < entries.count, let nextTry, now < nextTry { return [] }
            let suspects = all.prefix { $0.id <= lastSuspect }
            if let next = suspects.first(where: { $0.id == firstSuspect }) ?? suspects.first {
                nextTry = now + Self.searchDelay
                return [next]
            }
            nextTry = nil
            lastSuspect = 0
            firstSuspect = 0
            return all
        }

        /// Handles the loss of the connection.
        ///
        /// - Returns: the requests that fail, in order. The other requests wait for the next connection.
        mutating func connectionLost() -> [Entry] {
            let failed = entries.filter { $0.value.isWritten && $0.value.replay == .never }.sorted { $0.key < $1.key }
            for (id, _) in failed { entries[id] = nil }
            for (id, entry) in entries where entry.isWritten {
                entries[id]?.isWritten = false
                entries[id]?.isRepeated = true
            }
            abandonedBytes = nil
            nextTry = nil
            if entries.isEmpty { nextDeadline = nil }
            return failed.map(\.value)
        }

        /// Removes and returns the requests whose deadlines have passed, in order.
        mutating func expired(now: NIODeadline) -> [(id: UInt64, entry: Entry)] {
            guard let nextDeadline, nextDeadline <= now else { return [] }
            let expired = entries.filter { $0.value.deadline <= now }.sorted { $0.key < $1.key }
            for (id, entry) in expired {
                entries[id] = nil
                noteAbandoned(entry)
            }
            self.nextDeadline = entries.values.map(\.deadline).min()
            return expired.map { ($0.key, $0.value) }
        }

        /// Removes and returns all requests, in order.
        mutating func removeAll() -> [Entry] {
            defer {
                entries = [:]
                nextDeadline = nil
            }
            return entries.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}
