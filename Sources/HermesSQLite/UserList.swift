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

    /// Skips the first `cursor` users, and returns up to `limit` of the following users.
    static func users(_ bytes: [UInt8], from cursor: Int, limit: Int) -> [UserID] {
        var rest = bytes.dropFirst(4 * cursor).prefix(4 * limit)
        var users: [UserID] = []
        while let user = StoredForm.takeUser(from: &rest) { users.append(user) }
        return users
    }
}
