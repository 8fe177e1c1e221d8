// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// What a client remembers of an inbox across launches: whose it is, up to where the app took it, and its last entries.
///
/// State: in a lock, and in the store.
final class InboxJournal: Sendable {
    /// Who logged in last.
    struct Account: Hashable, Sendable {
        var uid: UInt32
        var nickName: String
        /// Tells whether a token is the last one, without keeping it.
        var tokenHash: UInt64

        /// Whether the credential can only be this account's.
        func owns(_ credential: Credential) -> Bool {
            switch credential {
            case .register: false
            case .password(let nickName, _): nickName.lowercased() == self.nickName.lowercased()
            case .token(let token): Self.hash(token) == tokenHash
            }
        }

        /// FNV-1a: enough to tell random tokens apart, and no way back to them.
        static func hash(_ token: String) -> UInt64 {
            token.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        }
    }

    fileprivate struct Kept: Sendable {
        /// The order in which the app took them.
        var ordinal: UInt64
        var event: Hermes_V1_Event
    }

    fileprivate struct State: Sendable {
        var account: Account?
        var cursor: Cursor?
        /// By place; an entry's place follows from its ordinal.
        var recent: [UInt64: Kept] = [:]
        var lastOrdinal: UInt64 = 0
        /// Keys whose records are not as they should be.
        var dirty: Set<String> = []
        /// Why the last write failed.
        var failure: HermesClientError?
        /// What an earlier run counted and did not upload.
        var statistics: Hermes_V1_Statistics?
        var logins: [Int64] = []
    }

    fileprivate enum Key {
        static let account = "account"
        static let cursor = "cursor"
        static let recent = "taken/"
        /// Of an earlier version: epoch and seq in place of the ordinal, and places that followed from the seq.
        static let outdated = "inbox/"
        static let statistics = "statistics"
        static let logins = "logins"
    }

    /// A longer entry is not kept; that it was taken is.
    fileprivate static let maxEntryBytes = 65_536

    private let store: any LocalStore
    private let maxEntries: UInt64
    private let state: NIOLockedValueBox<State>

    /// Creates a journal with what an earlier run left.
    ///
    /// - Parameters:
    ///   - store: where it is kept.
    ///   - records: what is there.
    ///   - maxEntries: how many entries are kept; 0: none.
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
            } else if record.key == Key.statistics {
                state.statistics = try? Hermes_V1_Statistics(wire: value)
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
    var cursor: Cursor? { state.withLockedValue { $0.cursor } }

    /// Logins whose answers were not seen, see ``StrayLogins/unanswered``.
    var logins: [Int64] { state.withLockedValue { $0.logins } }

    /// The last entries, oldest first.
    var recent: [InboxEvent] {
        state.withLockedValue { state in
            state.recent.values.sorted { $0.ordinal < $1.ordinal }.map { InboxEvent($0.event) }
        }
    }

    /// Why the last write failed; nil: it did not.
    var failure: HermesClientError? { state.withLockedValue { $0.failure } }

    /// Keeps who logged in; forgets the inbox if it is another's.
    func loggedIn(_ session: Session) async {
        state.withLockedValue { $0.begin(session) }
        // Should it fail, it is written with what comes next.
        _ = await flush()
    }

    /// Keeps that the app has taken an entry. What it does not keep the server still has, unless all was lost with the
    /// power: then the server's record of the device counts.
    ///
    /// - Parameters:
    ///   - event: the entry.
    ///   - session: whose it is.
    ///   - isCurrent: whether its seq counts still: the server may have begun a new inbox while it was waiting.
    /// - Returns: false if that could not be written.
    func taken(_ event: DelimitedLink.Event, of session: Session, isCurrent: Bool = true) async -> Bool {
        state.withLockedValue { state in
            state.begin(session)
            let position = Cursor(epoch: event.epoch, seq: event.seq)
            if isCurrent {
                guard event.seq > 0, event.epoch == session.epoch, state.cursor != position else { return }
                if let cursor = state.cursor, cursor.epoch == event.epoch, cursor.seq > event.seq { return }
                state.cursor = position
                state.dirty.insert(Key.cursor)
            }
            if let source = event.source, maxEntries > 0 { state.keep(source, maxEntries: maxEntries) }
        }
        return await flush()
    }

    /// Keeps that the server lost what was behind this place: the numbers above are given to others.
    func rewind(to place: Cursor) {
        let isBehind = state.withLockedValue { state in
            guard let cursor = state.cursor, cursor.epoch == place.epoch, cursor.seq > place.seq else { return false }
            state.cursor = place
            state.dirty.insert(Key.cursor)
            return true
        }
        guard isBehind, let changes = changes() else { return }
        store.write(changes, durably: false) { [self] result in _ = written(changes, result) }
    }

    /// Writes what is not written yet.
    ///
    /// - Returns: false if that failed; it is tried again with what comes next.
    private func flush() async -> Bool {
        while let changes = changes() {
            let result: Result<Void, any Error>
            do {
                result = .success(try await store.write(changes, durably: false))
            } catch {
                result = .failure(error)
            }
            guard written(changes, result) else { return false }
        }
        return true
    }

    /// What is to be written now.
    private func changes() -> [LocalChange]? {
        state.withLockedValue { state in
            guard !state.dirty.isEmpty else { return nil }
            defer { state.dirty = [] }
            return state.dirty.sorted().map { LocalChange(key: $0, value: state.value(of: $0)) }
        }
    }

    /// A write is over.
    ///
    /// - Returns: whether it succeeded.
    private func written(_ changes: [LocalChange], _ result: Result<Void, any Error>) -> Bool {
        state.withLockedValue { state in
            switch result {
            case .success:
                state.failure = nil
                // What changed meanwhile may have been written before this.
                for change in changes where state.value(of: change.key) != change.value {
                    state.dirty.insert(change.key)
                }
                return true
            case .failure(let error):
                state.failure = error as? HermesClientError ?? HermesClientError(.storeFailed, explain(error))
                state.dirty.formUnion(changes.map(\.key))
                return false
            }
        }
    }

    /// Keeps logins whose answers were not seen, for the next run.
    func keep(unanswered logins: [Int64]) {
        state.withLockedValue { $0.logins = logins }
        let value = logins.flatMap { Array(ByteBuffer(integer: $0).readableBytesView) }
        store.write([LocalChange(key: Key.logins, value: value.isEmpty ? nil : value)], durably: false) { _ in }
    }

    /// Keeps counts for the next run.
    func keep(_ statistics: Hermes_V1_Statistics) async {
        state.withLockedValue { $0.statistics = statistics }
        guard let bytes = try? statistics.wireBytes(as: [UInt8].self) else { return }
        try? await store.write([LocalChange(key: Key.statistics, value: bytes)], durably: false)
    }

    /// Takes out the counts that were kept: should this process be killed before they are uploaded, they are lost, rather
    /// than counted twice.
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
    /// Who is logged in: the inbox is forgotten if it is another's.
    fileprivate mutating func begin(_ session: Session) {
        let hash = InboxJournal.Account.hash(session.token)
        let new = InboxJournal.Account(uid: session.uid, nickName: session.nickName, tokenHash: hash)
        let isOther = new.uid != account?.uid
        if isOther {
            dirty.formUnion(recent.keys.map { InboxJournal.Key.recent + "\($0)" })
            recent = [:]
        }
        if isOther || session.epoch != cursor?.epoch, cursor != nil {
            cursor = nil
            dirty.insert(InboxJournal.Key.cursor)
        }
        guard new != account else { return }
        account = new
        dirty.insert(InboxJournal.Key.account)
    }

    /// Keeps an entry in place of the oldest.
    fileprivate mutating func keep(_ event: Hermes_V1_Event, maxEntries: UInt64) {
        let kept = InboxJournal.Kept(ordinal: lastOrdinal &+ 1, event: event)
        guard let stored = kept.stored, stored.count <= InboxJournal.maxEntryBytes else { return }
        lastOrdinal = kept.ordinal
        let place = lastOrdinal % maxEntries
        recent[place] = kept
        dirty.insert(InboxJournal.Key.recent + "\(place)")
    }

    /// Takes over what an earlier run left, perhaps with room for more or fewer.
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

    /// What is to be kept under a key now; nil: nothing.
    fileprivate func value(of key: String) -> [UInt8]? {
        switch key {
        case InboxJournal.Key.account: return account?.stored
        case InboxJournal.Key.cursor: return cursor?.stored
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
        guard let ordinal = buffer.readInteger(as: UInt64.self), let event = try? Hermes_V1_Event(wire: buffer)
        else { return nil }
        self.init(ordinal: ordinal, event: event)
    }

    fileprivate var stored: [UInt8]? {
        guard let event = try? event.wireBytes(as: [UInt8].self) else { return nil }
        return Array(ByteBuffer(integer: ordinal).readableBytesView) + event
    }
}
