// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Numbered publications. One node numbers all such publications of a topic, so that the topic's numbers are
/// consecutive.
extension ClusterMember {
    /// Publishes on this node. Returns whether the publication is retained, or nil if retaining was not requested.
    package typealias Publisher = @Sendable (NumberedPublication) async -> Result<Bool?, HermesError>

    /// Sets the function that publishes at the request of other nodes. This is called once, before the first
    /// connection.
    package func publishNumbered(_ publisher: @escaping Publisher) {
        numbered.withLock { $0 = NumberedPublisher(publish: publisher) }
    }

    /// Publishes on the node that numbers the topic.
    ///
    /// - Returns: nil if this node numbers the topic, or is not a member of the cluster; `.overloaded` if the node that
    ///   numbers the topic does not answer. Even then, that node may have published.
    package func publishElsewhere(_ publication: NumberedPublication) async -> Result<Bool?, HermesError>? {
        let owner = owner(of: publication.topic)
        guard isMember, !isThis(owner) else { return nil }
        guard case .published(let result)? = await bus.ask(.publish(publication), of: owner) else {
            let message = "Node \(owner), which numbers this topic, does not answer; try again shortly."
            return .failure(HermesError(.overloaded, message, retryAfter: Self.renewal))
        }
        return result
    }

    func publishHere(_ publication: NumberedPublication) async -> Result<Bool?, HermesError> {
        guard let publisher = numbered.withLock({ $0 }) else {
            return .failure(HermesError(.overloaded, "The server is starting; try again shortly."))
        }
        return await publisher.publish(publication)
    }

    /// Returns the node that numbers a topic: the node with the highest weight for the topic. So if a node joins or
    /// leaves, only the topics of that node get another owner. While nodes disagree about the members, two nodes may
    /// number the same topic. Then their numbers have different epochs.
    private func owner(of topic: TopicName) -> NodeID {
        var hash = StableHash()
        for byte in topic.rawValue.utf8 { hash.combine(byte) }
        return members.max { Self.weight(of: $0, hash.value) < Self.weight(of: $1, hash.value) } ?? roster.node.id
    }

    /// Returns the weight of a node for the hash of a topic, by the finalizer of SplitMix64.
    private static func weight(of node: NodeID, _ hash: UInt64) -> UInt64 {
        var bits = hash &+ (UInt64(node.rawValue) + 1) &* 0x9E37_79B9_7F4A_7C15
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }
}

/// A struct around a function. A bare function in a lock would be wrapped once more each time it is read (``Hook``).
struct NumberedPublisher: Sendable {
    let publish: ClusterMember.Publisher
}
