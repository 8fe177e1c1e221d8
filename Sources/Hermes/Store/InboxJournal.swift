// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// A client's record of an inbox across the runs of the app: the account, the cursor and the last entries.
///
/// State: behind a lock, and in the store.
final class InboxJournal: Sendable {
    /// The account that logged in last.
    struct Account: Hashable, Sendable {
        var uid: UInt32
        var nickName: String
        /// The hash of the last token, which recognizes the token without storing it.
        var tokenHash: UInt64

        init(uid: UInt32, nickName: String, tokenHash: UInt64) {
            self.uid = uid
            self.nickName = nickName
            self.tokenHash = tokenHash
        }

        init(_ session: Session) {
            self.init(
                uid: session.uid.rawValue,
                nickName: session.nickName,
                tokenHash: Self.hash(session.token)
            )
        }

        /// Whether the credential seems to be this account's. A name and a password may belong to another account, if
        /// that account has the name now.
        func mayOwn(_ credential: Credential) -> Bool {
            guard case .password(let nickName, _) = credential else { return owns(credential) }
            return nickName.lowercased() == self.nickName.lowercased()
        }

        /// Whether the credential is certainly this account's.
        func owns(_ credential: Credential) -> Bool {
            switch credential {
            // Another account may have the name now.
            case .register, .password: false
            case .token(let token): Self.hash(token) == tokenHash
            }
        }

        /// Returns the FNV-1a hash of a token. The hash distinguishes random tokens, and a token cannot be recovered
        /// from it.
        static func hash(_ token: String) -> UInt64 {
            token.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        }
    }

    fileprivate struct Kept: Sendable {
        /// The entry's number, in the order in which the app took the entries.
        var ordinal: UInt64
        var event: Hermes_V1_Event
    }

    fileprivate struct State: Sendable {
        var account: Account?
        var cursor: Cursor?
        /// Whether the app has not taken the last event `inboxReset` yet.
        var owesReset = false
        /// The kept entries by place. An entry's place is its ordinal modulo the largest number of entries.
        var recent: [UInt64: Kept] = [:]
        var lastOrdinal: UInt64 = 0
        /// The keys whose records in the store are out of date.
        var dirty: Set<String> = []
        /// The number of writes that have not ended.
        var writes = 0
        /// Called when no write is in flight any more.
        var waiters: [@Sendable () -> Void] = []
        /// The error of the last write; nil if it succeeded.
        var failure: HermesClientError?
        /// The counts that an earlier run did not upload.
        var statistics: Hermes_V1_Statistics?
        var logins: [Int64] = []
    }

    /// The next step until everything is stored.
    fileprivate enum Step {
        case write([LocalChange])
        /// The last changes are being written. If that fails, they must be written again.
        case wait
        case done
    }

    fileprivate enum Key {
        static let account = "account"
        static let cursor = "cursor"
        static let reset = "reset"
        static let recent = "taken/"
        /// The key prefix of an earlier version, with epoch and seq in place of the ordinal.
        static let outdated = "inbox/"
        static let statistics = "statistics"
        static let logins = "logins"
    }

    /// The largest entry that is kept, in bytes. For a longer entry, only the cursor is stored.
    fileprivate static let maxEntryBytes = 65_536

    private let store: any LocalStore
    private let maxEntries: UInt64
    private let state: NIOLockedValueBox<State>
    private let writeFailed = NIOLockedValueBox(FailureHandler())

    /// What is done after each write that failed.
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
        var state = State()
        var kept: [(key: String, Kept?)] = []
        for record in records {
            let value = ByteBuffer(bytes: record.value)
            if record.key == Key.account {
                state.account = Account(value)
            } else if record.key == Key.cursor {
                state.cursor = Cursor(value)
            } else if record.key == Key.reset {
                state.owesReset = true
            } else if record.key == Key.statistics {
                state.statistics = try? Hermes_V1_Statistics(wire: value, maxParts: nil)
            } else if record.key == Key.logins {
                var value = value
                while let login = value.readInteger(as: Int64.self) { state.logins.append(login) }
            } else if record.key.hasPrefix(Key.recent) {
                kept.append((record.key, Kept(value)))
            } else if record.key.hasPrefix(Key.outdated) {
                state.dirty.insert(record.key)
            }
        }
        state.restore(kept, maxEntries: self.maxEntries)
        self.state = NIOLockedValueBox(state)
    }

    var account: Account? { state.withLockedValue { $0.account } }
    /// The last seq up to which the app has nothing left to take; nil if unknown.
    var cursor: Cursor? { state.withLockedValue { $0.cursor } }
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

    /// Sets the function to call after each write that failed. It must see to it that ``retry(_:)`` is called later:
    /// until then, the store keeps the old values.
    func whenWriteFailed(_ body: @escaping @Sendable () -> Void) { writeFailed.withLockedValue { $0.body = body } }

    /// Notes the account that logged in, and begins to store it; forgets the inbox of another account.
    func loggedIn(_ session: Session) {
        state.withLockedValue { $0.begin(session) }
        retry { _ in }
    }

    /// Notes that the app has taken an event; ``flush()`` then records it in the store. A power cut can lose this
    /// record; the client then continues after an earlier entry.
    ///
    /// All notes must be made on the client's event loop, so that no login can come between the reading of the
    /// parameters and the note.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - session: the session in which it arrived.
    ///   - isCurrent: whether the entry's seq is still valid. The seq is no longer valid if the server began a new
    ///     inbox while the entry waited. Of an event `inboxReset`: whether it is the last one.
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
                state.dirty.insert(Key.cursor)
            }
            if let source = event.source, maxEntries > 0 { state.keep(source, maxEntries: maxEntries) }
        }
    }

    /// Begins to record in the store that the app has nothing left to take up to this place: after the last entry that
    /// it took, there are only messages of this device, and entries that it had taken before under other seqs.
    ///
    /// - Parameters:
    ///   - place: the place.
    ///   - uid: the account that the inbox belongs to.
    func passed(_ place: Cursor, of uid: UInt32) {
        let mustWrite = state.withLockedValue { state in
            guard state.account?.uid == uid else { return false }
            if let cursor = state.cursor, cursor.epoch != place.epoch || cursor.seq >= place.seq { return false }
            state.cursor = place
            state.dirty.insert(Key.cursor)
            // After a write, its caller writes what has changed meanwhile, so that many quick moves cause few writes.
            return state.writes == 0
        }
        if mustWrite { retry { _ in } }
    }

    /// Begins to record in the store that the server began a new inbox, or lost the newest entries and assigns their
    /// seqs to new entries. The inbox continues after this place, and the app has yet to take the event that says so.
    ///
    /// - Parameters:
    ///   - place: the place.
    ///   - uid: the account that the inbox belongs to.
    func reset(to place: Cursor, of uid: UInt32) {
        state.withLockedValue { state in
            guard state.account?.uid == uid else { return }
            state.cursor = place
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

    /// Returns what is to be done next, and removes the changes that the caller must write.
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

    /// Removes and returns the stored counts. If the process is killed before their upload, the counts are lost, but
    /// never counted twice.
    func takeStatistics() -> Hermes_V1_Statistics? {
        let statistics = state.withLockedValue { state in
            defer { state.statistics = nil }
            return state.statistics
        }
        if statistics != nil {
            store.write([LocalChange(key: Key.statistics, value: nil)], durably: false) { _ in }
        }
        return statistics
    }
}

extension InboxJournal.State {
    /// Notes the result of a write.
    ///
    /// - Returns: whether the write succeeded.
    fileprivate mutating func written(_ changes: [LocalChange], _ result: Result<Void, any Error>) -> Bool {
        switch result {
        case .success:
            failure = nil
            // If a value changed meanwhile, this write may have replaced a newer record, so the value is written again.
            for change in changes where value(of: change.key) != change.value { dirty.insert(change.key) }
            return true
        case .failure(let error):
            failure = error as? HermesClientError ?? HermesClientError(.storeFailed, explain(error), cause: error)
            dirty.formUnion(changes.map(\.key))
            return false
        }
    }

    /// Notes the account that logged in; forgets the inbox of another account.
    fileprivate mutating func begin(_ session: Session) {
        let new = InboxJournal.Account(session)
        let isOther = new.uid != account?.uid
        if isOther {
            dirty.formUnion(recent.keys.map { InboxJournal.Key.recent + "\($0)" })
            recent = [:]
            settleReset()
        }
        if isOther || session.epoch != cursor?.epoch, cursor != nil {
            cursor = nil
            dirty.insert(InboxJournal.Key.cursor)
        }
        guard new != account else { return }
        account = new
        dirty.insert(InboxJournal.Key.account)
    }

    /// Notes that no event `inboxReset` is left for the app.
    fileprivate mutating func settleReset() {
        guard owesReset else { return }
        owesReset = false
        dirty.insert(InboxJournal.Key.reset)
    }

    /// Keeps an entry, which replaces the oldest one if there are too many.
    fileprivate mutating func keep(_ event: Hermes_V1_Event, maxEntries: UInt64) {
        let kept = InboxJournal.Kept(ordinal: lastOrdinal &+ 1, event: event)
        guard let stored = kept.stored, stored.count <= InboxJournal.maxEntryBytes else { return }
        lastOrdinal = kept.ordinal
        let place = lastOrdinal % maxEntries
        recent[place] = kept
        dirty.insert(InboxJournal.Key.recent + "\(place)")
    }

    /// Takes over the entries of an earlier run, which may have kept a different number of entries.
    fileprivate mutating func restore(_ records: [(key: String, kept: InboxJournal.Kept?)], maxEntries: UInt64) {
        for record in records where record.kept == nil { dirty.insert(record.key) }
        let ordered = records.compactMap { record in record.kept.map { (key: record.key, kept: $0) } }
            .sorted { $0.kept.ordinal < $1.kept.ordinal }
        lastOrdinal = ordered.last?.kept.ordinal ?? 0
        let last = ordered.suffix(Int(clamping: maxEntries))
        for record in last {
            let place = record.kept.ordinal % maxEntries
            recent[place] = record.kept
            if record.key != InboxJournal.Key.recent + "\(place)" {
                dirty.formUnion([record.key, InboxJournal.Key.recent + "\(place)"])
            }
        }
        for record in ordered.dropLast(last.count) { dirty.insert(record.key) }
    }

    /// Returns the value to store under a key; nil if the record is to be removed.
    fileprivate func value(of key: String) -> [UInt8]? {
        switch key {
        case InboxJournal.Key.account: return account?.stored
        case InboxJournal.Key.cursor: return cursor?.stored
        case InboxJournal.Key.reset: return owesReset ? [1] : nil
        default:
            guard key.hasPrefix(InboxJournal.Key.recent),
                let place = UInt64(key.dropFirst(InboxJournal.Key.recent.count))
            else { return nil }
            return recent[place]?.stored
        }
    }
}

extension InboxJournal.Account {
    fileprivate init?(_ buffer: ByteBuffer) {
        var buffer = buffer
        guard let uid = buffer.readInteger(as: UInt32.self), let hash = buffer.readInteger(as: UInt64.self),
            let name = buffer.readString(length: buffer.readableBytes)
        else { return nil }
        self.init(uid: uid, nickName: name, tokenHash: hash)
    }

    fileprivate var stored: [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeInteger(uid)
        buffer.writeInteger(tokenHash)
        buffer.writeString(nickName)
        return Array(buffer.readableBytesView)
    }
}

extension Cursor {
    fileprivate init?(_ buffer: ByteBuffer) {
        var buffer = buffer
        self.init(reading: &buffer)
    }

    fileprivate init?(reading buffer: inout ByteBuffer) {
        guard let epoch = buffer.readInteger(as: UInt64.self), let seq = buffer.readInteger(as: UInt64.self)
        else { return nil }
        self.init(epoch: epoch, seq: seq)
    }

    fileprivate var stored: [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeInteger(epoch)
        buffer.writeInteger(seq)
        return Array(buffer.readableBytesView)
    }
}

extension InboxJournal.Kept {
    fileprivate init?(_ buffer: ByteBuffer) {
        var buffer = buffer
        guard let ordinal = buffer.readInteger(as: UInt64.self),
            let event = try? Hermes_V1_Event(wire: buffer, maxParts: nil)
        else { return nil }
        self.init(ordinal: ordinal, event: event)
    }

    fileprivate var stored: [UInt8]? {
        guard let event = try? event.wireBytes(as: [UInt8].self) else { return nil }
        return Array(ByteBuffer(integer: ordinal).readableBytesView) + event
    }
}
