// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The number of a login; no other login of this process has it.
///
/// A device id does not tell two logins apart, because every client of the account may use the same id.
package struct LoginNumber: Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)

    private let rawValue: UInt64

    /// Returns a number for a new login.
    package static func next() -> Self { Self(rawValue: last.add(1, ordering: .relaxed).newValue) }
}
