// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension HermesError {
    /// The time until a request can be tried again, in milliseconds, rounded up, at most a day; nil if unknown.
    var retryAfterMilliseconds: UInt32? {
        retryAfter.map { UInt32(min(max(($0 / .milliseconds(1)).rounded(.up), 1), 86_400_000)) }
    }
}
