// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The joins that a client announced to rooms and whose leaves may follow. A client may announce many members of a
/// room. This type does no I/O.
struct MQTTAnnouncedJoins: Sendable {
    /// The largest number of rooms that are remembered. A leave of any other room is charged separately.
    static let limit = 100
    /// The longest room topic that is remembered, in bytes.
    private static let maxTopicBytes = 128

    private var rooms: [TopicName: Int] = [:]

    /// The approximate memory in bytes.
    var bytes: Int { rooms.count * (Self.maxTopicBytes + 64) }

    mutating func joined(_ room: TopicName) {
        guard room.rawValue.utf8.count <= Self.maxTopicBytes, rooms.count < Self.limit || rooms[room] != nil else {
            return
        }
        rooms[room, default: 0] += 1
    }

    /// Removes one announced join from the record, because the leave has arrived.
    ///
    /// - Returns: whether there was an announced join for this leave.
    mutating func left(_ room: TopicName) -> Bool {
        guard let joins = rooms[room] else { return false }
        rooms[room] = joins > 1 ? joins - 1 : nil
        return true
    }
}
