// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: APIKeyStore {
    package func create(_ key: NewAPIKey, now: Timestamp) async throws(HermesError) -> APIKey {
        try await write { (db, _) in
            let id = try NamedSecret.insert(
                "INSERT INTO api_key (hash, name, scopes, created_at) VALUES (?, ?, ?, ?)",
                [Self.blob(key.hash), key.name, APIScope.text(key.scopes), now.rawValue],
                in: db,
                taken: StoreRefusals.keyNameTaken
            )
            return APIKey(id: id, name: key.name, scopes: key.scopes, createdAt: now)
        }
    }

    package func apiKeys() async throws(HermesError) -> [APIKey] {
        try await read { db in
            try Row.fetchAll(db, sql: "\(Self.selectKey) ORDER BY id").map(Self.apiKey)
        }
    }

    package func apiKey(_ hash: TokenHash) async throws(HermesError) -> APIKey? {
        try await read { db in
            try Row.fetchOne(db, sql: "\(Self.selectKey) WHERE hash = ?", arguments: [Self.blob(hash)]).map(Self.apiKey)
        }
    }

    package func used(_ key: APIKey, at now: Timestamp) async throws(HermesError) {
        try await write { (db, _) in
            try db.execute(
                sql: "UPDATE api_key SET last_used_at = ? WHERE id = ?",
                arguments: [now.rawValue, key.id]
            )
        }
    }

    package func revoke(apiKeyNamed name: String) async throws(HermesError) {
        try await write { (db, _) in
            try NamedSecret.delete(from: "api_key", named: name, in: db, missing: StoreRefusals.noSuchKey)
        }
    }

    private static let selectKey = "SELECT id, name, scopes, created_at, last_used_at FROM api_key"

    /// Leaves out scopes that only a newer version knows, so that this version does not grant them.
    private static func apiKey(_ row: Row) -> APIKey {
        let scopes = (row["scopes"] as String).split(separator: ",").compactMap { APIScope(rawValue: String($0)) }
        return APIKey(
            id: row["id"],
            name: row["name"],
            scopes: Set(scopes),
            createdAt: Timestamp(rawValue: row["created_at"]),
            lastUsedAt: (row["last_used_at"] as Int64?).map(Timestamp.init(rawValue:))
        )
    }
}
