// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension MessageContent {
    /// A hash of the content. It distinguishes a repetition from another message with the same client id.
    var stableHash: Int64 {
        var hash = StableHash()
        bytes.withUnsafeBytes { hash.combine($0) }
        return hash.stored
    }
}
