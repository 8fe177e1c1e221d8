// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Shared subscriptions whose member for one publication is chosen among clean and kept sessions, by whoever publishes it.
package final class DecidedShares: Sendable {
    private let keys: [TopicFilter]

    /// Those among `targets`; nil if there are none.
    package init?(_ targets: [DurableTarget]) {
        keys = targets.compactMap { target in
            guard case .group(let group) = target else { return nil }
            return group.key
        }
        if keys.isEmpty { return nil }
    }

    /// - Parameter key: ``SharedGroups/key(group:filter:)``.
    func contains(_ key: TopicFilter) -> Bool { keys.contains(key) }
}

/// The kept members of shared subscriptions, as the topic plane sees them.
protocol SharedKeeper: AnyObject, Sendable {
    /// Hands a publication of QoS 1 or 2 that was given back to the member whose turn it is, clean or kept.
    ///
    /// - Returns: false if the group has no kept members.
    func hand(_ publication: Publication, in key: TopicFilter) -> Bool
}
