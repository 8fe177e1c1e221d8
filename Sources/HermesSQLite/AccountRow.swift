// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The rows of accounts.
enum AccountRow {
    /// The value of the column `is_disabled` of an account that is being deleted. The account can no longer be found,
    /// but its name is still taken.
    static let leaving: Int64 = 2

    /// Selects accounts, except those being deleted. Further conditions may follow.
    static let select = """
        SELECT id, nick_name, nick_key, avatar_url, is_disabled, created_at, password FROM account \
        WHERE is_disabled <> \(leaving)
        """

    /// Reads an account from a row whose first six columns are the first six columns of ``select``.
    static func account(_ row: PreparedStatement) throws -> Account {
        Account(
            id: try row.user(0),
            nickName: NickName(stored: row.text(1) ?? "", key: row.text(2) ?? ""),
            avatarURL: row.text(3) ?? "",
            isDisabled: row.integer(4) != 0,
            createdAt: row.timestamp(5)
        )
    }

    /// Reads a row of ``select``.
    static func stored(_ row: PreparedStatement) throws -> StoredAccount {
        StoredAccount(account: try account(row), password: PasswordHash(phc: row.text(6) ?? ""))
    }
}
