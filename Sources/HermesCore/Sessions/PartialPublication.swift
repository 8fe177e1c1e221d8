// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A QoS 2 publication that is stored for only some of its targets. It was being stored in parts (``DurableFanOut``)
/// when the server stopped or the store failed. Its publisher has no acknowledgement, and repeats the publication. Then
/// the other targets get it.
package struct PartialPublication: Sendable, Hashable {
    /// The hash of the content (``content(of:)``). It distinguishes the publication from another publication under the
    /// same packet identifier.
    package let content: Int64
    /// The number of the next part.
    package var parts: Int
    /// The sessions that have the publication through ordinary subscriptions.
    package var sessions: Set<DurableSessionID>
    /// The shared subscriptions with a member that has the publication.
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

    /// Returns the targets of a part that need nothing more. Each of them has the publication, or the publication was
    /// dropped for it. If the chosen member of a shared subscription did not accept the publication, its target is left
    /// out, because another member must get the publication.
    package static func settled(_ targets: [PublicationTarget], _ seqs: [UInt64]) -> [PublicationTarget] {
        zip(targets, seqs).filter { $0.share == nil || $1 > 0 }.map(\.0)
    }

    /// Records that a part is stored for these targets.
    package mutating func add(_ targets: [PublicationTarget]) {
        parts += 1
        for target in targets {
            if let share = target.share { shares.insert(TopicText(share)) } else { sessions.insert(target.session) }
        }
    }

    /// Returns the hash of the topic and the payload.
    package static func content(of publication: StoredPublication) -> Int64 {
        var hash = StableHash()
        for byte in publication.topic.rawValue.utf8 { hash.combine(byte) }
        hash.combine(0)
        publication.payload.withUnsafeReadableBytes { hash.combine($0) }
        return hash.stored
    }
}
