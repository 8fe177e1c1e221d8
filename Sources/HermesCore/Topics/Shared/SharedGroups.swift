// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The shared subscriptions of all loops.
///
/// State: a `Mutex` around one dictionary; no other code is called while it is locked. The lock is taken when members
/// join and leave, and for publications of other nodes. It is also taken for publications to groups that have kept
/// members; these publications go through the store anyway.
final class SharedGroups: Sendable {
    private struct Entry {
        let group: SharedGroup
        /// The number of members that have joined or are joining. Another node with members counts as one member.
        var memberCount: Int
        /// The other nodes with members.
        var nodes = NodeSet()
        var seats: [SharedGroup.Seat] = []
    }

    /// The member that is chosen for a publication.
    struct Choice: Sendable {
        let group: SharedGroup
        let seat: SharedGroup.Seat
    }

    private let entries = Mutex<[TopicFilter: Entry]>([:])
    private let connected = Mutex<(mailboxes: [ShardMailbox], keeper: (any SharedKeeper)?)>(([], nil))

    /// The access to the kept members; nil if there are none.
    var keeper: (any SharedKeeper)? { connected.withLock { $0.keeper } }

    /// Connects the groups to the shards. Each `connect` function is called once, before members join.
    func connect(to mailboxes: [ShardMailbox]) { connected.withLock { $0.mailboxes = mailboxes } }

    func connect(to keeper: any SharedKeeper) { connected.withLock { $0.keeper = keeper } }

    /// Returns the key of a group. The key is unique, because a group's name has no `/`.
    static func key(group: String, filter: TopicFilter) -> TopicFilter {
        TopicFilter(checked: group + "/" + filter.rawValue, hasWildcard: true)
    }

    /// Joins a group; returns nil if the group does not exist.
    func join(_ key: TopicFilter) -> SharedGroup? {
        entries.withLock { entries in
            entries[key]?.memberCount += 1
            return entries[key]?.group
        }
    }

    /// Registers a group with one member. If a group with the same key was registered meanwhile, joins that group.
    ///
    /// - Returns: the registered group.
    func found(_ group: SharedGroup) -> SharedGroup {
        entries.withLock { entries in
            guard entries[group.key] == nil else {
                entries[group.key]?.memberCount += 1
                return entries[group.key]?.group ?? group
            }
            entries[group.key] = Entry(group: group, memberCount: 1)
            return group
        }
    }

    /// Registers a member that has joined.
    func sit(_ seat: SharedGroup.Seat, in group: SharedGroup) {
        entries.withLock { $0[group.key]?.seats.append(seat) }
    }

    /// Returns a group and its connected members, which are not copied; nil if there is no such group.
    func members(of key: TopicFilter) -> (group: SharedGroup, seats: [SharedGroup.Seat])? {
        entries.withLock { entries in entries[key].map { ($0.group, $0.seats) } }
    }

    /// Returns a group if `home` is its home shard; otherwise nil.
    func group(of key: TopicFilter, home: Int) -> SharedGroup? {
        entries.withLock { entries in entries[key].flatMap { $0.group.home == home ? $0.group : nil } }
    }

    /// Returns the home shard of a group.
    func home(of key: TopicFilter) -> Int? { entries.withLock { $0[key]?.group.home } }

    /// Registers another node that has members and has joined the group.
    ///
    /// - Returns: false if the node was already registered, or if the group no longer exists.
    func sit(_ node: NodeID, in group: SharedGroup) -> Bool {
        entries.withLock { entries in
            guard entries[group.key]?.group === group else { return false }
            return entries[group.key]?.nodes.insert(NodeSet(node)).inserted ?? false
        }
    }

    /// Removes another node, which no longer has members.
    ///
    /// - Returns: the group, and whether it was removed because it has no members any more; nil if the node was not
    ///   registered.
    func leave(_ key: TopicFilter, _ node: NodeID) -> (group: SharedGroup, isLast: Bool)? {
        entries.withLock { entries in
            guard let group = entries[key]?.group, entries[key]?.nodes.remove(NodeSet(node)) != nil else { return nil }
            return (group, Self.leave(group, &entries))
        }
    }

    /// Whether a member can get publications. It can if its loop is not too far behind.
    func isReachable(_ seat: SharedGroup.Seat) -> Bool {
        connected.withLock { seat.shard < $0.mailboxes.count && !$0.mailboxes[seat.shard].isFull }
    }

    /// Gives a publication to a member, from any thread.
    func hand(_ publication: Publication, to choice: Choice) {
        let item = SharedHandOver(publication: publication, to: choice.seat, of: choice.group)
        connected.withLock { $0.mailboxes }[choice.seat.shard].post([item])
    }

    /// - Parameter seat: the seat of the member that leaves; nil if the member has not taken a seat.
    /// - Returns: whether this was the last member. If so, the group is removed.
    func leave(_ group: SharedGroup, _ seat: SharedGroup.Seat? = nil) -> Bool {
        entries.withLock { entries in
            guard entries[group.key]?.group === group else { return false }
            if let seat { entries[group.key]?.seats.removeAll { $0 === seat } }
            return Self.leave(group, &entries)
        }
    }

    private static func leave(_ group: SharedGroup, _ entries: inout [TopicFilter: Entry]) -> Bool {
        guard var entry = entries[group.key] else { return false }
        entry.memberCount -= 1
        entries[group.key] = entry.memberCount > 0 ? entry : nil
        return entry.memberCount == 0
    }
}
