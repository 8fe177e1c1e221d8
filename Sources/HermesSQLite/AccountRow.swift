// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The column `is_disabled` of an account.
enum AccountRow {
    /// Its deletion has begun: nobody finds it, but its name is taken still.
    static let leaving: Int64 = 2
}
