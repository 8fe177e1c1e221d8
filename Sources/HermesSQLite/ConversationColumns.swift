// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// A conversation as the columns `kind`, `a`, `b`.
struct ConversationColumns {
    let kind: Int64
    let a: Int64
    let b: Int64

    init(kind: Int64, a: Int64, b: Int64) {
        self.kind = kind
        self.a = a
        self.b = b
    }

    init(_ conversation: ConversationID) {
        switch conversation {
        case .direct(let low, let high): self.init(kind: 1, a: Int64(low.rawValue), b: Int64(high.rawValue))
        case .group(let group): self.init(kind: 2, a: Int64(group.rawValue), b: 0)
        }
    }

    /// The conversation; nil if the columns are damaged.
    var conversation: ConversationID? { ConversationID(kind: kind, a: a, b: b) }
}
