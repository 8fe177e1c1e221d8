// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

extension InboxJournal {
    /// The contents of the store after the values of ``dirty`` have been written.
    struct State: Sendable {
        var account: Account?
        var cursor: Cursor?
        /// The newest entry that has arrived in the cursor's epoch. It is stored with the cursor.
        var newest: KnownEntry?
        /// Whether the app has not taken the last event `inboxReset` yet.
        var owesReset = false
        /// The kept entries by place. An entry's place is its ordinal modulo the largest number of entries.
        var recent: [UInt64: Kept] = [:]
        var lastOrdinal: UInt64 = 0
        /// The keys whose records in the store are out of date.
        var dirty: Set<String> = []
        /// The number of writes that have not ended.
        var writes = 0
        /// The functions to call when no write is in flight any more.
        var waiters: [@Sendable () -> Void] = []
        /// The error of the last write; nil if it succeeded.
        var failure: HermesClientError?
        /// The counts that an earlier run did not upload.
        var statistics: Hermes_V1_Statistics?
        var logins: [Int64] = []
    }

    /// An entry that the app has taken.
    struct Kept: Sendable {
        /// The entry's number, in the order in which the app took the entries.
        var ordinal: UInt64
        var event: Hermes_V1_Event
    }

    /// The keys of the store's records.
    enum Key {
        static let account = "account"
        static let cursor = "cursor"
        static let reset = "reset"
        static let recent = "taken/"
        /// The key prefix of an earlier version, with epoch and seq in place of the ordinal.
        static let outdated = "inbox/"
        static let statistics = "statistics"
        static let logins = "logins"
    }
}

extension InboxJournal.State {
    /// Continues the records of an earlier run.
    init(records: [LocalRecord], maxEntries: UInt64) {
        var kept: [(key: String, kept: InboxJournal.Kept?)] = []
        for record in records {
            var value = ByteBuffer(bytes: record.value)
            switch record.key {
            case InboxJournal.Key.account: account = InboxJournal.Account(value)
            case InboxJournal.Key.cursor:
                cursor = Cursor(&value)
                newest = KnownEntry(stored: &value)
            case InboxJournal.Key.reset: owesReset = true
            case InboxJournal.Key.statistics: statistics = try? Hermes_V1_Statistics(wire: value, maxParts: nil)
            case InboxJournal.Key.logins:
                while let login = value.readInteger(as: Int64.self) { logins.append(login) }
            case let key where key.hasPrefix(InboxJournal.Key.recent): kept.append((key, InboxJournal.Kept(value)))
            case let key where key.hasPrefix(InboxJournal.Key.outdated): dirty.insert(key)
            default: break
            }
        }
        restore(kept, maxEntries: maxEntries)
    }

    /// Notes the result of a write.
    ///
    /// - Returns: whether the write succeeded.
    mutating func written(_ changes: [LocalChange], _ result: Result<Void, any Error>) -> Bool {
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

    /// Notes the account that logged in. Forgets the inbox if it belongs to another account.
    mutating func begin(_ session: Session) {
        let new = InboxJournal.Account(session)
        let isOther = new.uid != account?.uid
        if isOther {
            dirty.formUnion(recent.keys.map { InboxJournal.Key.recent + "\($0)" })
            recent = [:]
            settleReset()
        }
        if isOther || session.epoch != cursor?.epoch, cursor != nil {
            cursor = nil
            newest = nil
            dirty.insert(InboxJournal.Key.cursor)
        }
        guard new != account else { return }
        account = new
        dirty.insert(InboxJournal.Key.account)
    }

    /// Notes that no event `inboxReset` is left for the app.
    mutating func settleReset() {
        guard owesReset else { return }
        owesReset = false
        dirty.insert(InboxJournal.Key.reset)
    }

    /// The largest size of an entry that is kept, in bytes. For a longer entry, only the cursor is stored.
    private static let maxEntryBytes = 65_536

    /// Keeps an entry. If there are too many entries, the new entry replaces the oldest one.
    mutating func keep(_ event: Hermes_V1_Event, maxEntries: UInt64) {
        let kept = InboxJournal.Kept(ordinal: lastOrdinal &+ 1, event: event)
        guard let stored = kept.stored, stored.count <= Self.maxEntryBytes else { return }
        lastOrdinal = kept.ordinal
        let place = lastOrdinal % maxEntries
        recent[place] = kept
        dirty.insert(InboxJournal.Key.recent + "\(place)")
    }

    /// Takes over the entries of an earlier run, which may have kept a different number of entries.
    private mutating func restore(_ records: [(key: String, kept: InboxJournal.Kept?)], maxEntries: UInt64) {
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

    /// Returns the value to store under a key; nil if the record must be removed.
    func value(of key: String) -> [UInt8]? {
        switch key {
        case InboxJournal.Key.account: return account?.stored
        case InboxJournal.Key.cursor: return cursor?.stored(with: newest)
        case InboxJournal.Key.reset: return owesReset ? [1] : nil
        case InboxJournal.Key.statistics: return statistics.flatMap { try? $0.wireBytes(as: [UInt8].self) }
        default:
            guard key.hasPrefix(InboxJournal.Key.recent),
                let place = UInt64(key.dropFirst(InboxJournal.Key.recent.count))
            else { return nil }
            return recent[place]?.stored
        }
    }
}

extension Cursor {
    fileprivate init?(_ buffer: inout ByteBuffer) {
        guard let (epoch, seq) = buffer.readMultipleIntegers(as: (UInt64, UInt64).self) else { return nil }
        self.init(epoch: epoch, seq: seq)
    }

    fileprivate func stored(with newest: KnownEntry?) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeMultipleIntegers(epoch, seq)
        newest?.store(into: &buffer)
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
