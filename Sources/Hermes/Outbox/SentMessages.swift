// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The sent messages whose inbox entries the app has not reached yet. Each sent message is also an entry in the inbox
/// of its own account. After a later login of the account, the server delivers these entries, and the client must
/// recognize them as messages of this device. Does no I/O.
struct SentMessages: Sendable {
    /// The inbox that a seq belongs to.
    struct Inbox: Hashable, Sendable {
        var uid: UInt32
        var epoch: UInt64
    }

    fileprivate struct Entry: Sendable {
        let clientID: String
        let seq: UInt64
        /// The inbox of the message's entry; nil if an earlier version stored the message. A message without an inbox
        /// is forgotten only if there are too many messages.
        let inbox: Inbox?
    }

    private var entries: [Entry] = []

    private static let prefix = "sent/"
    /// The largest number of remembered messages. If the app does not read its inbox, the oldest messages are
    /// forgotten, and their entries arrive as if another device had sent them.
    static let maxEntries = 1000

    /// Creates a list that continues the list of an earlier run.
    init(records: [LocalRecord] = []) {
        for record in records where record.key.utf8.starts(with: Self.prefix.utf8) {
            var value = ByteBuffer(bytes: record.value)
            guard let seq = value.readInteger(as: UInt64.self) else { continue }
            // The key is cut by bytes. If the client id begins with a combining mark, this mark and the slash before
            // it are one `Character`.
            let clientID = String(Substring(record.key.utf8.dropFirst(Self.prefix.utf8.count)))
            entries.append(Entry(clientID: clientID, seq: seq, inbox: Inbox(reading: &value)))
        }
    }

    var clientIDs: Set<ExactText> { Set(entries.map { ExactText($0.clientID) }) }

    /// Notes that the server committed a message, which has this seq in the account's own inbox.
    ///
    /// - Parameter place: the last seq that the app has taken in this inbox; 0 if unknown.
    /// - Returns: the changes to store.
    mutating func sent(_ clientID: String, seq: UInt64, in inbox: Inbox, place: UInt64) -> [LocalChange] {
        var changes = passed(place, in: inbox)
        let key = ExactText(clientID)
        guard seq > place, !entries.contains(where: { ExactText($0.clientID) == key }) else { return changes }
        let entry = Entry(clientID: clientID, seq: seq, inbox: inbox)
        entries.append(entry)
        changes.append(LocalChange(key: Self.prefix + clientID, value: entry.stored))
        if entries.count > Self.maxEntries { changes.append(Self.removal(of: entries.removeFirst().clientID)) }
        return changes
    }

    private mutating func passed(_ place: UInt64, in inbox: Inbox) -> [LocalChange] {
        let passed = entries.filter { $0.inbox == inbox && $0.seq <= place }
        if !passed.isEmpty { entries.removeAll { $0.inbox == inbox && $0.seq <= place } }
        return passed.map { Self.removal(of: $0.clientID) }
    }

    private static func removal(of clientID: String) -> LocalChange {
        LocalChange(key: prefix + clientID, value: nil)
    }
}

extension SentMessages.Inbox {
    fileprivate init?(reading buffer: inout ByteBuffer) {
        guard let uid = buffer.readInteger(as: UInt32.self), let epoch = buffer.readInteger(as: UInt64.self)
        else { return nil }
        self.init(uid: uid, epoch: epoch)
    }
}

extension SentMessages.Entry {
    /// The value of the record: seq u64, uid u32, epoch u64.
    fileprivate var stored: [UInt8] {
        var buffer = ByteBuffer(integer: seq)
        if let inbox {
            buffer.writeInteger(inbox.uid)
            buffer.writeInteger(inbox.epoch)
        }
        return Array(buffer.readableBytesView)
    }
}
