// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension HermesError {
    /// The time in milliseconds until a request can be tried again; nil if it is unknown. The time is rounded up, and
    /// is at most a day.
    var retryAfterMilliseconds: UInt32? {
        retryAfter.map { UInt32(min(max(($0 / .milliseconds(1)).rounded(.up), 1), 86_400_000)) }
    }
}
