// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// A client's record of an inbox across the runs of the app: the account, the cursor and the last entries.
///
/// A lock protects the state. The store keeps the state for the next run.
final class InboxJournal: Sendable {
    /// The next step towards storing everything.
    private enum Step {
        case write([LocalChange])
        /// The last changes are being written. If that fails, they must be written again.
        case wait
        case done
    }

    private let store: any LocalStore
    private let maxEntries: UInt64
    private let state: NIOLockedValueBox<State>
    private let writeFailed = NIOLockedValueBox(FailureHandler())

    /// The function to call after each write that failed.
    private struct FailureHandler: Sendable {
        var body: (@Sendable () -> Void)?
    }

    /// Creates a journal that continues the journal of an earlier run.
    ///
    /// - Parameters:
    ///   - store: the store.
    ///   - records: the store's records.
    ///   - maxEntries: the largest number of entries to keep.
    init(store: any LocalStore, records: [LocalRecord], maxEntries: Int) {
        self.store = store
        self.maxEntries = UInt64(max(0, maxEntries))
        state = NIOLockedValueBox(State(records: records, maxEntries: self.maxEntries))
    }

    var account: Account? { state.withLockedValue { $0.account } }
    /// The last seq up to which the app has nothing left to take; nil if unknown.
    var cursor: Cursor? { state.withLockedValue { $0.cursor } }
    /// The newest entry that has arrived, taken or not; nil if unknown.
    var newest: KnownEntry? { state.withLockedValue { $0.newest } }
    /// Whether the app has not taken the last event `inboxReset` yet, in this run or an earlier one.
    var owesReset: Bool { state.withLockedValue { $0.owesReset } }

    /// Returns the last seq that is recorded as taken in an inbox; 0 if none is.
    func place(in inbox: SentMessages.Inbox) -> UInt64 {
        state.withLockedValue { state in
            guard state.account?.uid == inbox.uid, state.cursor?.epoch == inbox.epoch else { return 0 }
            return state.cursor?.seq ?? 0
        }
    }

    /// The logins without an answer; see ``StrayLogins/unanswered``.
    var logins: [Int64] { state.withLockedValue { $0.logins } }

    /// The last entries, oldest first.
    var recent: [InboxEvent] {
        state.withLockedValue { state in
            state.recent.values.sorted { $0.ordinal < $1.ordinal }.map { InboxEvent($0.event) }
        }
    }

    /// The error of the last write; nil if it succeeded.
    var failure: HermesClientError? { state.withLockedValue { $0.failure } }

    /// Sets the function to call after each write that failed. The function must ensure that ``retry(_:)`` is called
    /// later. Until then, the store keeps the old values.
    func whenWriteFailed(_ body: @escaping @Sendable () -> Void) { writeFailed.withLockedValue { $0.body = body } }

    /// Notes the account that logged in, and begins to store it. Forgets the inbox if it belongs to another account.
    func loggedIn(_ session: Session) {
        state.withLockedValue { $0.begin(session) }
        retry { _ in }
    }

    /// Notes that the app has taken an event. ``flush()`` then records the event in the store. If a power cut destroys
    /// this record, the client continues after an earlier entry.
    ///
    /// This method must be called on the client's event loop, so that no login can happen between the reading of the
    /// parameters and the call.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - session: the session in which the event arrived.
    ///   - isCurrent: whether the entry's seq is still valid. The seq is no longer valid if the server began a new
    ///     inbox while the entry waited. For an event `inboxReset`, this says whether it is the latest reset.
    func taken(_ event: DelimitedLink.Event, of session: Session, isCurrent: Bool = true) {
        state.withLockedValue { state in
            state.begin(session)
            if case .inboxReset = event.event.kind {
                if isCurrent { state.settleReset() }
                return
            }
            let position = Cursor(epoch: event.epoch, seq: event.seq)
            if isCurrent {
                guard event.seq > 0, event.epoch == session.epoch, state.cursor != position else { return }
                if let cursor = state.cursor, cursor.epoch == event.epoch, cursor.seq > event.seq { return }
                state.cursor = position
                KnownEntry.note(event.source.flatMap { KnownEntry($0) }, in: &state.newest)
                state.dirty.insert(Key.cursor)
            }
            if let source = event.source, maxEntries > 0 { state.keep(source, maxEntries: maxEntries) }
        }
    }

    /// Begins to record in the store that the app has nothing left to take up to this place. Between the last entry
    /// that the app took and this place, there are only messages of this device, and entries that the app took earlier
    /// under other seqs.
    ///
    /// - Parameters:
    ///   - place: the place.
    ///   - newest: the newest entry that has arrived; nil if unknown.
    ///   - uid: the account that the inbox belongs to.
    func passed(_ place: Cursor, newest: KnownEntry? = nil, of uid: UInt32) {
        let mustWrite = state.withLockedValue { state in
            guard state.account?.uid == uid else { return false }
            if let cursor = state.cursor, cursor.epoch != place.epoch || cursor.seq >= place.seq { return false }
            state.cursor = place
            KnownEntry.note(newest, in: &state.newest)
            state.dirty.insert(Key.cursor)
            // When a write ends, its caller also writes the changes that were made meanwhile. Many quick moves thus
            // cause few writes.
            return state.writes == 0
        }
        if mustWrite { retry { _ in } }
    }

    /// Begins to record in the store that the server began a new inbox, or lost the newest entries and assigns their
    /// seqs to new entries. The inbox continues after this place, and the app has yet to take the event `inboxReset`.
    ///
    /// - Parameters:
    ///   - place: the place.
    ///   - uid: the account that the inbox belongs to.
    func reset(to place: Cursor, of uid: UInt32) {
        state.withLockedValue { state in
            guard state.account?.uid == uid else { return }
            state.cursor = place
            state.newest = nil
            state.owesReset = true
            state.dirty.formUnion([Key.cursor, Key.reset])
        }
        retry { _ in }
    }

    /// Writes the pending changes, waits for the writes that other calls have begun, and reports whether everything is
    /// stored.
    func retry(_ completion: @escaping @Sendable (Bool) -> Void) {
        switch nextStep() {
        case .done: completion(true)
        case .wait: whenWritten { [self] in retry(completion) }
        case .write(let changes):
            store.write(changes, durably: false) { [self] result in
                guard written(changes, result) else { return completion(false) }
                retry(completion)
            }
        }
    }

    /// Writes the pending changes, and waits for the writes that other calls have begun.
    ///
    /// - Returns: false if the write failed. The changes are then written together with the next changes, or by the
    ///   next ``retry(_:)``.
    @discardableResult
    func flush() async -> Bool {
        await withCheckedContinuation { continuation in retry { continuation.resume(returning: $0) } }
    }

    /// Returns the next step, and removes the changes that the caller must write.
    private func nextStep() -> Step {
        state.withLockedValue { state in
            guard !state.dirty.isEmpty else { return state.writes == 0 ? .done : .wait }
            defer { state.dirty = [] }
            state.writes += 1
            return .write(state.dirty.sorted().map { LocalChange(key: $0, value: state.value(of: $0)) })
        }
    }

    /// Calls the function as soon as no write is in flight.
    private func whenWritten(_ body: @escaping @Sendable () -> Void) {
        let isIdle = state.withLockedValue { state in
            guard state.writes > 0 else { return true }
            state.waiters.append(body)
            return false
        }
        if isIdle { body() }
    }

    /// Notes the result of a write.
    ///
    /// - Returns: whether the write succeeded.
    private func written(_ changes: [LocalChange], _ result: Result<Void, any Error>) -> Bool {
        let (isWritten, waiters) = state.withLockedValue { state -> (Bool, [@Sendable () -> Void]) in
            let isWritten = state.written(changes, result)
            state.writes -= 1
            guard state.writes == 0 else { return (isWritten, []) }
            defer { state.waiters = [] }
            return (isWritten, state.waiters)
        }
        for waiter in waiters { waiter() }
        if !isWritten, let writeFailed = writeFailed.withLockedValue(\.body) { writeFailed() }
        return isWritten
    }

    /// Stores the logins without an answer, for the next run.
    func keep(unanswered logins: [Int64]) {
        state.withLockedValue { $0.logins = logins }
        let value = logins.flatMap { Array(ByteBuffer(integer: $0).readableBytesView) }
        store.write([LocalChange(key: Key.logins, value: value.isEmpty ? nil : value)], durably: false) { _ in }
    }

    /// Stores counts for the next run.
    func keep(_ statistics: Hermes_V1_Statistics) async {
        state.withLockedValue { $0.statistics = statistics }
        guard let bytes = try? statistics.wireBytes(as: [UInt8].self) else { return }
        try? await store.write([LocalChange(key: Key.statistics, value: bytes)], durably: false)
    }

    /// Returns the stored counts and begins to remove them from the store. If the process is killed before their
    /// upload, the counts are lost. A removal that fails is tried again. If none succeeds before the process ends, the
    /// counts are uploaded twice.
    func takeStatistics() -> Hermes_V1_Statistics? {
        let statistics = state.withLockedValue { state -> Hermes_V1_Statistics? in
            guard let statistics = state.statistics else { return nil }
            state.statistics = nil
            state.dirty.insert(Key.statistics)
            return statistics
        }
        if statistics != nil { retry { _ in } }
        return statistics
    }
}
