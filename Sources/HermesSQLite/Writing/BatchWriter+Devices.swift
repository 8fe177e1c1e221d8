// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Opening devices.
extension BatchWriter {
    mutating func open(_ opening: DeviceOpening) throws -> Device {
        let user = opening.user
        guard try loadInbox(of: user), let index = cache.inboxes.index(forKey: user) else {
            throw StoreRefusals.noSuchAccount
        }
        try loadCursors(of: user)
        let reader = DeviceReader(db: db)
        guard let stored = try reader.account(.id(user)) else { throw StoreRefusals.noSuchAccount }
        let known = try reader.device(opening.device.id, of: user)
        try opening.check(
            known: known?.proof,
            count: cache.cursors[user]?.count ?? 0,
            password: stored.password,
            isTokenKnown: try reader.owns(opening.shown.token, user)
        )
        let beginsAnew = opening.beginsAnew(known?.proof)
        let start = max(cache.inboxes.values[index].oldest, 1) - 1
        var device =
            known
            ?? Device(description: opening.device, createdAt: now, lastSeenAt: now, cursor: start, proof: opening.proof)
        device.description = opening.device
        device.lastSeenAt = now
        device.proof = max(device.proof, opening.proof)
        // The cached cursor may be ahead of the row.
        device.cursor = beginsAnew ? start : cache.cursors[user]?[opening.device.id]?.seq ?? device.cursor
        try write(device, of: user)
        cache.cursors[user]?[opening.device.id] = InboxCursors.Cursor(seq: device.cursor, proof: device.proof)
        if beginsAnew { release(index) }
        if let token = opening.token { try add(token, of: user, opening.device.id) }
        return device
    }

    private func write(_ device: Device, of user: UserID) throws {
        let statement = try PreparedStatement(
            db,
            """
            INSERT INTO device (user, device_id, name, platform, app_version, created_at, last_seen_at, cursor, proof)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (user, device_id) DO UPDATE SET name = excluded.name, platform = excluded.platform,
                app_version = excluded.app_version, last_seen_at = excluded.last_seen_at, cursor = excluded.cursor,
                proof = excluded.proof
            """
        )
        let description = device.description
        statement.bind(user, at: 1)
        statement.bind(device.createdAt, at: 6)
        statement.bind(device.lastSeenAt, at: 7)
        statement.bind(device.cursor, at: 8)
        statement.bind(Int64(device.proof.rawValue), at: 9)
        try statement.bind(description.id.rawValue, at: 2) {
            try statement.bind(description.name, at: 3) {
                try statement.bind(description.platform, at: 4) {
                    try statement.bind(description.appVersion, at: 5) { try statement.run() }
                }
            }
        }
    }

    private func add(_ token: TokenHash, of user: UserID, _ device: DeviceID) throws {
        let insert = try PreparedStatement(
            db,
            "INSERT OR REPLACE INTO token (hash, user, device_id, created_at) VALUES (?, ?, ?, ?)"
        )
        insert.bind(user, at: 2)
        insert.bind(now, at: 4)
        try insert.bind(token.bytes, at: 1) {
            try insert.bind(device.rawValue, at: 3) { try insert.run() }
        }
        // Keeps the present token and the newest of the other tokens.
        let trim = try PreparedStatement(
            db,
            """
            DELETE FROM token WHERE hash IN (SELECT hash FROM token WHERE user = ? AND device_id = ?
                ORDER BY hash = ? DESC, created_at DESC LIMIT -1 OFFSET ?)
            """
        )
        trim.bind(user, at: 1)
        trim.bind(Int64(StoreSettings.maxTokensPerDevice), at: 4)
        try trim.bind(device.rawValue, at: 2) {
            try trim.bind(token.bytes, at: 3) { try trim.run() }
        }
    }
}
