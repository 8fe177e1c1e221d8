// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The list of users of a push job: 4 bytes per user, little-endian.
enum UserList {
    static func encode(_ users: [UserID]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 * users.count)
        for user in users { StoredForm.append(UInt64(user.rawValue), count: 4, to: &bytes) }
        return bytes
    }

    /// Returns up to `limit` users after the first `cursor` ones.
    static func users(_ bytes: [UInt8], from cursor: Int, limit: Int) -> [UserID] {
        var rest = bytes.dropFirst(4 * cursor).prefix(4 * limit)
        var users: [UserID] = []
        while let user = StoredForm.takeUser(from: &rest) { users.append(user) }
        return users
    }
}

/// The inbox seqs of a message: 12 bytes per recipient, the user in 4 and the seq in 8, little-endian.
enum DeliveryList {
    static func append(_ user: UserID, _ seq: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(bitPattern: user.rawValue).littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: seq.littleEndian) { bytes.append(contentsOf: $0) }
    }

    static func decode(_ bytes: [UInt8]) throws -> [(user: UserID, seq: UInt64)] {
        var rest = bytes[...]
        var deliveries: [(user: UserID, seq: UInt64)] = []
        while !rest.isEmpty {
            guard let user = StoredForm.takeUser(from: &rest),
                let seq = StoredForm.take(8, from: &rest)
            else { throw StoreFailure.damagedRow }
            deliveries.append((user, seq))
        }
        return deliveries
    }
}

extension MessageContent {
    /// A hash of the content, which distinguishes a repetition from another message with the same client id.
    var stableHash: Int64 {
        var hash = StableHash()
        bytes.withUnsafeBytes { hash.combine($0) }
        return hash.stored
    }
}
