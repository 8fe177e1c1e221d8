// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The newest entry that the client has got. If the server has another entry with this seq at the next login, its store
/// went back to an earlier state, and the client's cursor means nothing in this store.
struct KnownEntry: Hashable, Sendable {
    var seq: UInt64
    /// The id of the message or push; empty for other kinds, and for an entry that is not for this device.
    var id: String
    /// The time of the commit, in milliseconds since 1970.
    var serverTime: Int64

    /// Creates the record of an entry; nil if the event stands for deleted entries.
    init?(_ event: Hermes_V1_Event) {
        switch event.event {
        case .expired: return nil
        case .message(let message): id = message.id
        case .push(let push): id = push.id
        case .oversized(let entry): id = entry.id
        // An event that is absent is for another device, or of a kind that the client does not know.
        case nil, .readMark, .recalled, .contact, .group, .call: id = ""
        }
        seq = event.seq
        serverTime = event.serverTimeMs
    }

    /// Creates the record of the entry of a message that this device has sent.
    init(_ receipt: Hermes_V1_Receipt) {
        seq = receipt.inboxSeq
        id = receipt.messageID
        serverTime = receipt.serverTimeMs
    }

    /// Notes an entry that has arrived. It replaces the newest entry if its seq is higher.
    static func note(_ entry: KnownEntry?, in newest: inout KnownEntry?) {
        if let entry, entry.seq > newest?.seq ?? 0 { newest = entry }
    }

    /// The record as the login sends it.
    var wire: Hermes_V1_KnownEntry {
        var entry = Hermes_V1_KnownEntry()
        entry.seq = seq
        entry.id = id
        entry.serverTimeMs = serverTime
        return entry
    }

    /// The longest id that is stored, in bytes.
    private static let maxIDBytes = 64

    /// Reads the rest of a stored cursor; nil if an earlier version stored the cursor.
    init?(stored buffer: inout ByteBuffer) {
        guard let (seq, serverTime) = buffer.readMultipleIntegers(as: (UInt64, Int64).self),
            let id = buffer.readString(length: buffer.readableBytes)
        else { return nil }
        self.seq = seq
        self.serverTime = serverTime
        self.id = id
    }

    /// Appends the stored form. An entry with a longer id than any server gives is not stored.
    func store(into buffer: inout ByteBuffer) {
        guard id.utf8.count <= Self.maxIDBytes else { return }
        buffer.writeMultipleIntegers(seq, serverTime)
        buffer.writeString(id)
    }
}
