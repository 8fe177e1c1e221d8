// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The number of a login. No other login of this process has the same number.
///
/// A device id does not distinguish two logins, because every client of the account may use the same id.
package struct LoginNumber: Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)

    private let rawValue: UInt64

    /// Returns a number for a new login.
    package static func next() -> Self { Self(rawValue: last.add(1, ordering: .relaxed).newValue) }
}
