// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The shared subscriptions for which the topic plane must not choose the member that gets a publication.
/// ``DurableSessions`` chooses this member among clean and kept sessions, or another node has chosen it.
package final class DecidedShares: Sendable {
    /// The value for a publication of another node, which has chosen the members of all shared subscriptions.
    static let all = DecidedShares(keys: .all)

    /// The keys of the shared subscriptions.
    private enum Keys: Sendable {
        case all
        /// At most ``few`` keys.
        case few([TopicFilter])
        /// More than ``few`` keys. They are in a set, because each group of the topic looks for its own key.
        case many(Set<TopicFilter>)
    }

    /// The largest number of keys that are compared one by one.
    private static let few = 8

    private let keys: Keys

    private init(keys: Keys) { self.keys = keys }

    /// Creates the set from `targets`; returns nil if no target is a group.
    package init?(_ targets: [DurableTarget]) {
        let keys: [TopicFilter] = targets.compactMap { target in
            guard case .group(let group) = target else { return nil }
            return group.key
        }
        if keys.isEmpty { return nil }
        self.keys = keys.count > Self.few ? .many(Set(keys)) : .few(keys)
    }

    /// - Parameter key: ``SharedGroups/key(group:filter:)``.
    func contains(_ key: TopicFilter) -> Bool {
        switch keys {
        case .all: true
        case .few(let keys): keys.contains(key)
        case .many(let keys): keys.contains(key)
        }
    }
}

/// Gives the topic plane access to the kept members of shared subscriptions: the members whose sessions are kept.
protocol SharedKeeper: AnyObject, Sendable {
    /// Gives the next member a publication of QoS 1 or 2 that another member gave back. The next member's session may
    /// be clean or kept.
    ///
    /// - Returns: false if the group has no kept members.
    func hand(_ publication: Publication, in key: TopicFilter) -> Bool
}
