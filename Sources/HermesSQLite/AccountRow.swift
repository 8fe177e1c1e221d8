// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The column `is_disabled` of an account.
enum AccountRow {
    /// Being deleted: nobody finds it, but its name is still taken.
    static let leaving: Int64 = 2
}
