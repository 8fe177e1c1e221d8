// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: InvitationStore {
    package func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation {
        try await write { (db, _) in
            let id = try NamedSecret.insert(
                "INSERT INTO invitation (hash, name, uses, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
                [
                    Self.blob(invitation.hash), invitation.name, invitation.uses, now.rawValue,
                    invitation.expiresAt?.rawValue,
                ],
                in: db,
                taken: StoreRefusals.invitationNameTaken
            )
            return Invitation(
                id: id,
                name: invitation.name,
                uses: invitation.uses,
                createdAt: now,
                expiresAt: invitation.expiresAt
            )
        }
    }

    package func invitations() async throws(HermesError) -> [Invitation] {
        try await read { db in
            try Row.fetchAll(db, sql: "\(Self.selectInvitation) ORDER BY id").map(Self.invitation)
        }
    }

    package func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation? {
        try await read { db in
            try Row.fetchOne(db, sql: "\(Self.selectInvitation) WHERE hash = ?", arguments: [Self.blob(hash)])
                .map(Self.invitation)
        }
    }

    package func revoke(invitationNamed name: String) async throws(HermesError) {
        try await write { (db, _) in
            try NamedSecret.delete(from: "invitation", named: name, in: db, missing: StoreRefusals.noSuchInvitation)
        }
    }

    /// Counts one use of an invitation. Throws if the invitation has expired or has no use left.
    static func use(_ hash: TokenHash, at now: Timestamp, in db: Database) throws {
        try db.execute(
            sql: """
                UPDATE invitation SET used = used + 1
                WHERE hash = ? AND used < uses AND (expires_at IS NULL OR expires_at > ?)
                """,
            arguments: [blob(hash), now.rawValue]
        )
        guard db.changesCount > 0 else { throw Self.noSuchInvitation }
    }

    private static let selectInvitation = "SELECT id, name, uses, used, created_at, expires_at FROM invitation"

    private static func invitation(_ row: Row) -> Invitation {
        Invitation(
            id: row["id"],
            name: row["name"],
            uses: row["uses"],
            used: row["used"],
            createdAt: Timestamp(rawValue: row["created_at"]),
            expiresAt: (row["expires_at"] as Int64?).map(Timestamp.init(rawValue:))
        )
    }
}
