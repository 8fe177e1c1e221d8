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
        var position: Cursor
        var event: Hermes_V1_Event
    }

    private struct State: Sendable {
        var account: Account?
        var cursor: Cursor?
        /// By place; an entry's place follows from its seq.
        var recent: [UInt64: Kept] = [:]
        /// What an earlier run counted and did not upload.
        var statistics: Hermes_V1_Statistics?
        var logins: [Int64] = []
    }

    private enum Key {
        static let account = "account"
        static let cursor = "cursor"
        static let recent = "inbox/"
        static let statistics = "statistics"
        static let logins = "logins"
    }

    /// A longer entry is not kept; that it was taken is.
    private static let maxEntryBytes = 65_536

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
            } else if record.key.hasPrefix(Key.recent), let place = UInt64(record.key.dropFirst(Key.recent.count)) {
                state.recent[place] = Kept(value)
            }
        }
        self.state = NIOLockedValueBox(state)
    }

    var account: Account? { state.withLockedValue { $0.account } }
    var cursor: Cursor? { state.withLockedValue { $0.cursor } }

    /// Logins whose answers were not seen, see ``StrayLogins/unanswered``.
    var logins: [Int64] { state.withLockedValue { $0.logins } }

    /// The last entries, oldest first.
    var recent: [InboxEvent] {
        state.withLockedValue { state in
            state.recent.values.sorted { $0.position.seq < $1.position.seq }.map { InboxEvent($0.event) }
        }
    }

    /// Keeps who logged in; forgets the inbox if it is another's.
    func loggedIn(_ session: Session) async {
        let changes = state.withLockedValue { Self.changes(for: session, in: &$0) }
        guard !changes.isEmpty else { return }
        // Should it fail, the server's record of the device counts at the next launch.
        try? await store.write(changes, durably: false)
    }

    /// Keeps that the app has taken an entry. What it does not keep the server still has, unless all was lost with the
    /// power: then the server's record of the device counts.
    func taken(_ event: DelimitedLink.Event, of session: Session) async {
        let changes = state.withLockedValue { state in
            var changes = Self.changes(for: session, in: &state)
            let position = Cursor(epoch: event.epoch, seq: event.seq)
            // One that was waiting when the server began a new inbox counts for nothing any more.
            guard event.seq > 0, event.epoch == session.epoch, state.cursor != position else { return changes }
            if let cursor = state.cursor, cursor.epoch == event.epoch, cursor.seq > event.seq { return changes }
            state.cursor = position
            changes.append(LocalChange(key: Key.cursor, value: position.stored))
            if let source = event.source, maxEntries > 0 {
                let kept = Kept(position: position, event: source)
                let place = event.seq % maxEntries
                if let value = kept.stored, value.count <= Self.maxEntryBytes {
                    state.recent[place] = kept
                    changes.append(LocalChange(key: Key.recent + "\(place)", value: value))
                }
            }
            return changes
        }
        guard !changes.isEmpty else { return }
        try? await store.write(changes, durably: false)
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

    private static func changes(for session: Session, in state: inout State) -> [LocalChange] {
        let hash = Account.hash(session.token)
        let account = Account(uid: session.uid, nickName: session.nickName, tokenHash: hash)
        var changes: [LocalChange] = []
        if account.uid != state.account?.uid || session.epoch != state.cursor?.epoch {
            if state.cursor != nil { changes.append(LocalChange(key: Key.cursor, value: nil)) }
            changes += state.recent.keys.map { LocalChange(key: Key.recent + "\($0)", value: nil) }
            state.cursor = nil
            state.recent = [:]
        }
        if account != state.account {
            state.account = account
            changes.append(LocalChange(key: Key.account, value: account.stored))
        }
        return changes
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
        guard let position = Cursor(reading: &buffer), let event = try? Hermes_V1_Event(wire: buffer)
        else { return nil }
        self.init(position: position, event: event)
    }

    fileprivate var stored: [UInt8]? {
        guard let event = try? event.wireBytes(as: [UInt8].self) else { return nil }
        return position.stored + event
    }
}
