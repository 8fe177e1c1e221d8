// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Messages that went out, each an entry of one's own inbox, too, which the app has not come to: in its next run the
/// server gives it all behind the app's place, and then it has to be known that these are this device's own. Does no IO.
struct SentMessages: Sendable {
    private var entries: [(clientID: String, seq: UInt64)] = []

    private static let prefix = "sent/"
    /// An app that sends and never looks at its inbox gets its oldest ones as from another device.
    static let maxEntries = 1000

    /// Creates a list with what an earlier run left.
    init(records: [LocalRecord] = []) {
        for record in records where record.key.hasPrefix(Self.prefix) {
            var value = ByteBuffer(bytes: record.value)
            guard let seq = value.readInteger(as: UInt64.self) else { continue }
            entries.append((String(record.key.dropFirst(Self.prefix.count)), seq))
        }
    }

    var clientIDs: Set<String> { Set(entries.map(\.clientID)) }

    /// The server committed a message; it is the entry of this seq in one's own inbox.
    ///
    /// - Parameter place: up to where the app has taken the inbox.
    /// - Returns: what is to be stored.
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
