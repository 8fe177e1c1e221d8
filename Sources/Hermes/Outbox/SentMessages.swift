// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The sent messages whose entries in the account's own inbox the app has not reached yet. In the next run of the app,
/// the server delivers these entries, and the client must recognize them as messages of this device. Does no I/O.
struct SentMessages: Sendable {
    private var entries: [(clientID: String, seq: UInt64)] = []

    private static let prefix = "sent/"
    /// The largest number of remembered messages. If the app does not read its inbox, the oldest messages are
    /// forgotten, and their entries arrive as if another device had sent them.
    static let maxEntries = 1000

    /// Creates a list that continues the list of an earlier run.
    init(records: [LocalRecord] = []) {
        for record in records where record.key.hasPrefix(Self.prefix) {
            var value = ByteBuffer(bytes: record.value)
            guard let seq = value.readInteger(as: UInt64.self) else { continue }
            entries.append((String(record.key.dropFirst(Self.prefix.count)), seq))
        }
    }

    var clientIDs: Set<String> { Set(entries.map(\.clientID)) }

    /// Notes that the server committed a message, which has this seq in the account's own inbox.
    ///
    /// - Parameter place: the last seq that the app has taken.
    /// - Returns: the changes to store.
    mutating func sent(_ clientID: String, seq: UInt64, place: UInt64) -> [LocalChange] {
        var changes = passed(place)
        guard seq > place, !entries.contains(where: { $0.clientID == clientID }) else { return changes }
        entries.append((clientID, seq))
        changes.append(
            LocalChange(key: Self.prefix + clientID, value: Array(ByteBuffer(integer: seq).readableBytesView))
        )
        if entries.count > Self.maxEntries { changes.append(Self.removal(of: entries.removeFirst().clientID)) }
        return changes
    }

    private mutating func passed(_ place: UInt64) -> [LocalChange] {
        let passed = entries.filter { $0.seq <= place }
        if !passed.isEmpty { entries.removeAll { $0.seq <= place } }
        return passed.map { Self.removal(of: $0.clientID) }
    }

    private static func removal(of clientID: String) -> LocalChange {
        LocalChange(key: prefix + clientID, value: nil)
    }
}
