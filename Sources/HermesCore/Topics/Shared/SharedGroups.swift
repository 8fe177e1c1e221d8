// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Which shared subscriptions there are, over all loops.
///
/// State: a `Mutex` around one dictionary; nothing is called under it. Taken when members join and leave, never for a
/// publication.
final class SharedGroups: Sendable {
    private struct Entry {
        let group: SharedGroup
        var memberCount: Int
    }

    private let entries = Mutex<[TopicFilter: Entry]>([:])

    /// What a group is known by: a group's name has no `/`.
    static func key(group: String, filter: TopicFilter) -> TopicFilter {
        TopicFilter(checked: group + "/" + filter.rawValue, hasWildcard: true)
    }

    var count: Int { entries.withLock { $0.count } }

    /// The group, with one member more; nil if there is none.
    func join(_ key: TopicFilter) -> SharedGroup? {
        entries.withLock { entries in
            entries[key]?.memberCount += 1
            return entries[key]?.group
        }
    }

    /// Makes a group known that has one member, unless there is one by now, which has one member more then.
    ///
    /// - Returns: the group that is known.
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

    /// - Returns: whether it was the last member; then the group is not known any more.
    func leave(_ group: SharedGroup) -> Bool {
        entries.withLock { entries in
            guard var entry = entries[group.key], entry.group === group else { return false }
            entry.memberCount -= 1
            entries[group.key] = entry.memberCount > 0 ? entry : nil
            return entry.memberCount == 0
        }
    }
}
