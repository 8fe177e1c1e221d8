// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A QoS 2 publication that was to be stored in parts (``DurableFanOut``) and is stored for some of its targets only:
/// the server ended, or the store failed. Its publisher has no acknowledgement and repeats it; then the others get it.
package struct PartialPublication: Sendable, Hashable {
    /// Tells it from another publication under the same identifier (``content(of:)``).
    package let content: Int64
    /// The number of the next part.
    package var parts: Int
    /// The sessions that have it by subscriptions of their own.
    package var sessions: Set<DurableSessionID>
    /// The shared subscriptions that have it.
    package var shares: Set<TopicText>

    package init(
        content: Int64,
        parts: Int = 0,
        sessions: Set<DurableSessionID> = [],
        shares: Set<TopicText> = []
    ) {
        self.content = content
        self.parts = parts
        self.sessions = sessions
        self.shares = shares
    }

    /// The targets of a part that have it, or for which it was dropped. A chosen member that did not take it leaves the
    /// publication to others of its shared subscription.
    package static func settled(_ targets: [PublicationTarget], _ seqs: [UInt64]) -> [PublicationTarget] {
        zip(targets, seqs).filter { $0.share == nil || $1 > 0 }.map(\.0)
    }

    /// A part is stored.
    package mutating func add(_ targets: [PublicationTarget]) {
        parts += 1
        for target in targets {
            if let share = target.share { shares.insert(TopicText(share)) } else { sessions.insert(target.session) }
        }
    }

    /// The hash of topic and payload.
    package static func content(of publication: StoredPublication) -> Int64 {
        var hash = StableHash()
        for byte in publication.topic.rawValue.utf8 { hash.combine(byte) }
        hash.combine(0)
        publication.payload.withUnsafeReadableBytes { hash.combine($0) }
        return hash.stored
    }
}
