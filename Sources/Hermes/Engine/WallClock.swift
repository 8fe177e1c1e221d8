// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The device's clock.
package enum WallClock {
    /// The time in milliseconds since 1970.
    package static func milliseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}
