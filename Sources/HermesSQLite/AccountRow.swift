// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Values of the column `is_disabled` of an account.
enum AccountRow {
    /// The account is being deleted: nobody finds it, but its name is still taken.
    static let leaving: Int64 = 2
}
