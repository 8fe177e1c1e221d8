// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Changes the owner of each session from a name to the number of the account with this name. Until this migration,
    /// sessions belonged to names. If no account has the name, the session continues to belong to the name.
    ///
    /// The column owner has the form of SessionOwner.stored; the column payer has the form of CommitSource.stored.
    /// The column renamed_at is the head of the queue at the time when the owner was last renamed.
    @Sendable static func keySessionsByNumber(_ db: Database) throws {
        /// The new form of a name.
        func owner(named name: String) -> String {
            "coalesce((SELECT 'u' || id FROM account WHERE nick_key = \(name)), 's' || \(name))"
        }
        try db.execute(
            sql: """
                ALTER TABLE session ADD COLUMN renamed_at INTEGER NOT NULL DEFAULT 0;

                -- In two steps, because a name may look like the new form of another owner. No name begins with U+0001.
                UPDATE session SET owner = char(1) || \(owner(named: "owner")) WHERE owner <> '';
                UPDATE session SET owner = substr(owner, 2) WHERE owner <> '';

                UPDATE session SET payer = owner WHERE owner <> '';
                UPDATE retained SET payer = \(owner(named: "substr(payer, 2)")) WHERE substr(payer, 1, 1) = 'a';
                """
        )
    }
}
