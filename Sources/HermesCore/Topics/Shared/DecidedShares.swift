// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Shared subscriptions whose member for a publication is chosen by the publisher, among clean and kept sessions.
package final class DecidedShares: Sendable {
    /// For a publication of another node, which has chosen the members of all shared subscriptions.
    static let all = DecidedShares(keys: nil)

    /// Nil: all.
    private let keys: [TopicFilter]?

    private init(keys: [TopicFilter]?) { self.keys = keys }

    /// Creates the set from `targets`; nil if it is empty.
    package init?(_ targets: [DurableTarget]) {
        let keys: [TopicFilter] = targets.compactMap { target in
            guard case .group(let group) = target else { return nil }
            return group.key
        }
        if keys.isEmpty { return nil }
        self.keys = keys
    }

    /// - Parameter key: ``SharedGroups/key(group:filter:)``.
    func contains(_ key: TopicFilter) -> Bool { keys?.contains(key) ?? true }
}

/// The kept members of shared subscriptions, for the topic plane.
protocol SharedKeeper: AnyObject, Sendable {
    /// Gives a returned QoS 1 or 2 publication to the next member, clean or kept.
    ///
    /// - Returns: false if the group has no kept members.
    func hand(_ publication: Publication, in key: TopicFilter) -> Bool
}
