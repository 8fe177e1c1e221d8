// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Puts events for the operator's back end into the durable queue. Thread-safe.
///
/// State: one `Mutex` around the unstored notices and the counts.
package final class WebhookOutbox: Sendable {
    /// The counts since the start of the process.
    package struct Statistics: Sendable, Hashable {
        package internal(set) var queued: UInt64 = 0
        /// The number of events that were dropped because too many events waited in the store or in memory, or because
        /// the store refused them.
        package internal(set) var dropped: UInt64 = 0

        package init() {}
    }

    /// A notice that must be stored, with the time at which it was accepted.
    private struct Noted {
        let notice: WebhookNotice
        let time: Timestamp
    }

    private struct State {
        var waiting: [Noted] = []
        var ids = MessageIDGenerator()
        var statistics = Statistics()

        /// Puts back notices that could not be stored. If too many notices then wait, the newest notices are dropped.
        mutating func putBack(_ batch: [Noted]) {
            waiting.insert(contentsOf: batch, at: 0)
            let surplus = max(0, waiting.count - WebhookOutbox.maxWaiting)
            waiting.removeLast(surplus)
            statistics.dropped += UInt64(surplus)
        }
    }

    /// The maximum number of notices that wait to be stored.
    private static let maxWaiting = 20_000
    /// The maximum number of notices that are stored in one transaction. The number is limited because commits wait for
    /// the transaction.
    private static let batch = 200
    /// The pause between a failure of the store and the next attempt to store the waiting notices.
    private static let pause = Duration.seconds(1)

    package let store: any WebhookStore
    /// Signalled when this process has events to post.
    package let stored = WakeUp()
    private let kinds: Set<WebhookNotice.Kind>
    private let limit: Int
    private let time: any TimeSource
    private let cluster: ClusterMember?
    private let state = Mutex(State())
    private let noted = WakeUp()

    /// - Parameters:
    ///   - kinds: the enabled kinds. Notices of other kinds are ignored.
    ///   - limit: the maximum number of events that may wait in the store.
    ///   - cluster: this process as a member of a cluster; nil if it is the only process.
    package init(
        store: any WebhookStore,
        kinds: Set<WebhookNotice.Kind>,
        limit: Int,
        time: any TimeSource,
        cluster: ClusterMember? = nil
    ) {
        self.store = store
        self.kinds = kinds
        self.limit = limit
        self.time = time
        self.cluster = cluster
        cluster?.webhooksStored.observe { [stored] in stored.signal() }
        // From now on, this node may be the node that posts the events.
        cluster?.repaired.observe { [stored] in stored.signal() }
    }

    /// Whether this process posts the events in the queue. One node posts for all nodes.
    package var isPostedHere: Bool { cluster?.isOnDuty ?? true }

    private func tellStored() {
        if isPostedHere { stored.signal() } else { cluster?.tellWebhooks() }
    }

    /// Whether this kind is enabled.
    package func wants(_ kind: WebhookNotice.Kind) -> Bool { kinds.contains(kind) }

    package var statistics: Statistics { state.withLock { $0.statistics } }

    /// Accepts a notice and returns at once; ``run()`` stores the notice shortly afterwards.
    package func note(_ notice: WebhookNotice) {
        guard wants(notice.kind) else { return }
        let now = time.now()
        let isFirst = state.withLock { state in
            guard state.waiting.count < Self.maxWaiting else {
                state.statistics.dropped += 1
                return false
            }
            state.waiting.append(Noted(notice: notice, time: now))
            return state.waiting.count == 1
        }
        if isFirst { noted.signal() }
    }

    /// Stores notices. When the call returns, they are in the queue. Many notices are stored in several transactions,
    /// so the first notices may be in the queue even after an error. If the caller tries again, these notices are
    /// queued again with other ids.
    ///
    /// - Parameter marks: see ``WebhookStore/appendWebhooks(_:marks:limit:)``. The marks are stored together with the
    ///   last notices.
    package func append(_ notices: [WebhookNotice], marks: [UserID: UInt64]) async throws(HermesError) {
        let now = time.now()
        var rest = notices.map { Noted(notice: $0, time: now) }[...]
        while rest.count > Self.batch {
            try await append(Array(rest.prefix(Self.batch)), marks: [:])
            rest = rest.dropFirst(Self.batch)
        }
        try await append(Array(rest), marks: marks)
    }

    private func append(_ noted: [Noted], marks: [UserID: UInt64]) async throws(HermesError) {
        let events = state.withLock { state in
            noted.filter { wants($0.notice.kind) }.map {
                $0.notice.event(id: String(describing: state.ids.next(now: $0.time)), now: $0.time)
            }
        }
        guard !events.isEmpty || !marks.isEmpty else { return }
        let dropped = try await store.appendWebhooks(events, marks: marks, limit: limit)
        state.withLock { state in
            state.statistics.queued += UInt64(events.count)
            state.statistics.dropped += UInt64(dropped)
        }
        if !events.isEmpty { tellStored() }
    }

    /// Queues an event again, with the same id, so that the receiver recognizes the repetition.
    package func append(again event: WebhookEvent) async throws(HermesError) {
        // With the new time of creation, the event is due at once, and the server retries it for as long as a new
        // event.
        let event = WebhookEvent(id: event.id, user: event.user, createdAt: time.now(), body: event.body)
        let dropped = try await store.appendWebhooks([event], marks: [:], limit: limit)
        state.withLock { state in
            state.statistics.queued += 1
            state.statistics.dropped += UInt64(dropped)
        }
        tellStored()
    }

    /// Stores notices until the task is cancelled; ``flush()`` then stores the remaining notices. While the store
    /// fails, notices wait in memory.
    package func run() async {
        while !Task.isCancelled {
            await noted.wait()
            while await !storeWaiting(), !Task.isCancelled {
                // The sleep throws when the task is cancelled.
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    /// Stores the accepted notices. If the store fails temporarily, the remaining notices wait for the next call.
    /// Notices that cannot be stored for another reason are dropped and counted.
    package func flush() async { _ = await storeWaiting() }

    /// Stores the accepted notices.
    ///
    /// - Returns: false if the store failed temporarily, so that notices still wait.
    private func storeWaiting() async -> Bool {
        while !Task.isCancelled {
            let batch = state.withLock { state in
                let batch = Array(state.waiting.prefix(Self.batch))
                state.waiting.removeFirst(batch.count)
                return batch
            }
            guard !batch.isEmpty else { return true }
            do throws(HermesError) {
                try await append(batch, marks: [:])
            } catch {
                guard error.isTemporary else {
                    state.withLock { $0.statistics.dropped += UInt64(batch.count) }
                    continue
                }
                state.withLock { $0.putBack(batch) }
                return false
            }
        }
        return true
    }
}

extension HermesError {
    /// Whether the same request may succeed later: its code is from 3000 to 3999.
    fileprivate var isTemporary: Bool { code.rawValue / 1000 == 3 }
}
