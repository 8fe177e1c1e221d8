// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reads devices and login data from one snapshot.
struct DeviceReader {
    let db: Database

    private static let columns = "device_id, name, platform, app_version, created_at, last_seen_at, cursor, proof"

    /// Returns the devices of an account, without damaged rows.
    func devices(of user: UserID, skipping damage: Damage) throws -> [Device] {
        let query = try PreparedStatement(db, "SELECT \(Self.columns) FROM device WHERE user = ? ORDER BY id")
        query.bind(user, at: 1)
        return try damage.list(query, name: { _ in "a device of user \(user.rawValue)" }, read: Self.device)
    }

    /// Returns matching devices, the newest first, without damaged rows. Looks only at the newest devices
    /// (``StoreSettings/maxSearched``).
    func devices(containing text: String, limit: Int, skipping damage: Damage) throws -> [OwnedDevice] {
        let end = try Int64.fetchOne(
            db,
            sql: "SELECT id FROM device ORDER BY id DESC LIMIT 1 OFFSET ?",
            arguments: [StoreSettings.maxSearched]
        )
        let query = try PreparedStatement(
            db,
            """
            SELECT \(Self.columns), user FROM device
            WHERE id > ?1 AND (instr(lower(device_id), ?2) > 0 OR instr(lower(name), ?2) > 0) ORDER BY id DESC
            """
        )
        query.bind(end ?? 0, at: 1)
        return try query.bind(text, at: 2) {
            try damage.list(
                query,
                limit: limit,
                name: { "a device of user \($0.integer(8))" },
                read: { OwnedDevice(owner: try $0.user(8), description: try Self.device($0).description) }
            )
        }
    }

    func device(_ device: DeviceID, of user: UserID) throws -> Device? {
        let query = try PreparedStatement(
            db,
            "SELECT \(Self.columns) FROM device WHERE user = ? AND device_id = ?"
        )
        query.bind(user, at: 1)
        return try query.bind(device.rawValue, at: 2) { try query.first(Self.device) }
    }

    /// Returns the tokens of an account, without damaged rows.
    func tokens(of user: UserID, skipping damage: Damage) throws -> [DeviceToken] {
        let query = try PreparedStatement(
            db,
            "SELECT device_id, created_at FROM token WHERE user = ? ORDER BY created_at DESC, hash"
        )
        query.bind(user, at: 1)
        return try damage.list(query, name: { _ in "a token of user \(user.rawValue)" }, read: Self.token)
    }

    func owner(of token: TokenHash) throws -> TokenOwner? {
        let query = try PreparedStatement(db, "SELECT user, device_id FROM token WHERE hash = ?")
        return try query.bind(token.bytes, at: 1) {
            try query.first { row in
                guard let device = row.text(1).flatMap({ DeviceID($0) }) else { throw StoreFailure.damagedRow }
                return TokenOwner(user: try row.user(0), device: device)
            }
        }
    }

    /// Whether a token belongs to the account.
    func owns(_ token: TokenHash?, _ user: UserID) throws -> Bool {
        try token.flatMap { try owner(of: $0) }?.user == user
    }

    func account(_ key: AccountKey) throws -> StoredAccount? {
        switch key {
        case .id(let id):
            let query = try PreparedStatement(db, "\(AccountRow.select) AND id = ?")
            query.bind(id, at: 1)
            return try query.first(AccountRow.stored)
        case .nickName(let name):
            let query = try PreparedStatement(db, "\(AccountRow.select) AND nick_key = ?")
            return try query.bind(name.key, at: 1) { try query.first(AccountRow.stored) }
        }
    }

    func seenAt(_ network: NetworkMark, of user: UserID) throws -> Timestamp? {
        let query = try PreparedStatement(db, "SELECT seen_at FROM known_network WHERE user = ? AND network = ?")
        query.bind(user, at: 1)
        query.bind(network.rawValue, at: 2)
        return try query.first { $0.timestamp(0) }
    }

    /// Reads a stored proof. A value that only a newer version knows counts as the strongest proof.
    static func proof(_ stored: Int64) -> DeviceProof {
        Int(exactly: stored).flatMap(DeviceProof.init(rawValue:)) ?? .account
    }

    private static func token(_ row: PreparedStatement) throws -> DeviceToken {
        guard let device = row.text(0).flatMap({ DeviceID($0) }) else { throw StoreFailure.damagedRow }
        return DeviceToken(device: device, issuedAt: row.timestamp(1))
    }

    private static func device(_ row: PreparedStatement) throws -> Device {
        guard let id = row.text(0).flatMap({ DeviceID($0) }) else { throw StoreFailure.damagedRow }
        return Device(
            description: DeviceDescription(
                id: id,
                name: row.text(1) ?? "",
                platform: row.text(2) ?? "",
                appVersion: row.text(3) ?? ""
            ),
            createdAt: row.timestamp(4),
            lastSeenAt: row.timestamp(5),
            cursor: try row.sequence(6),
            proof: Self.proof(row.integer(7))
        )
    }
}
