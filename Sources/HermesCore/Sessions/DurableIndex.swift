// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Finds the durable sessions that subscribe to a topic. Their filters are in a ``TopicTree``.
struct DurableIndex {
    struct Entry {
        var filter: TopicFilter
        var members: [DurableSessionID: SubscriptionOptions] = [:]
        /// The groups that share the filter, by their names.
        var groups: [TopicText: Group] = [:]
        /// A number that changes with each change of this filter's members.
        var version: UInt64 = 0
        /// The source that pays for each member, if the filter's shape is costly.
        var payers: [Membership: CommitSource] = [:]

        var isEmpty: Bool { members.isEmpty && groups.isEmpty }
    }

    /// A session that has a filter, by itself or as a member of a group.
    struct Membership: Hashable {
        let session: DurableSessionID
        /// The group's name; nil if the session has the filter by itself.
        let group: TopicText?

        init(_ session: DurableSessionID, group: String?) {
            self.session = session
            self.group = group.map { TopicText($0) }
        }
    }

    struct Group {
        /// The members. Each change of them discards ``known``.
        var members: [DurableSessionID: SubscriptionOptions] = [:] {
            didSet { known = nil }
        }
        /// The group with these members, if it was created since the last change of the members.
        var known: DurableGroup?
        let turn = DurableGroup.Turn()
    }

    private let shapes: ShapeBudget
    private var tree = TopicTree()
    private(set) var entries: [Entry] = []
    private var free: [UInt32] = []

    /// A number that changes with each change of the index.
    private(set) var version: UInt64 = 1

    var isEmpty: Bool { tree.isEmpty }

    /// - Parameter shapes: the budget that counts the filters with costly shapes.
    init(shapes: ShapeBudget = ShapeBudget()) { self.shapes = shapes }

    /// - Parameter payer: the source that pays for the session.
    /// - Returns: false if the filter is invalid.
    @discardableResult
    mutating func insert(
        _ id: DurableSessionID,
        _ subscription: DurableSubscription,
        payer: CommitSource = .server
    ) -> Bool {
        guard let (group, filter) = Self.parse(subscription.filter) else { return false }
        let index: UInt32
        if let known = tree.value(of: filter) {
            index = known
        } else if let reused = free.popLast() {
            index = reused
            entries[Int(index)] = Entry(filter: filter)
            tree.insert(filter, value: index)
        } else {
            index = UInt32(entries.count)
            entries.append(Entry(filter: filter))
            tree.insert(filter, value: index)
        }
        let old: SubscriptionOptions?
        if let group {
            old = entries[Int(index)].groups[TopicText(group), default: Group()].members.updateValue(
                subscription.options,
                forKey: id
            )
        } else {
            old = entries[Int(index)].members.updateValue(subscription.options, forKey: id)
        }
        let shape = TopicShape(of: filter)
        if old == nil, shape.isCostly {
            shapes.add(shape, of: payer)
            entries[Int(index)].payers[Membership(id, group: group)] = payer
        }
        // Equal options do not change the version, because a new version requires a new search for the targets of all
        // topics.
        if old != subscription.options {
            version &+= 1
            entries[Int(index)].version = version
        }
        return true
    }

    /// Changes the version, because some members no longer have a load, or have a load again.
    mutating func membersChanged() { version &+= 1 }

    mutating func remove(_ id: DurableSessionID, _ filterText: String) {
        membersChanged()
        forget(id, filterText)
    }

    /// Removes a member without a new version of the index. No search finds the member any more, because it has no
    /// load.
    mutating func forget(_ id: DurableSessionID, _ filterText: String) {
        guard let (group, filter) = Self.parse(filterText), let index = tree.value(of: filter) else { return }
        let old: SubscriptionOptions?
        if let group {
            let name = TopicText(group)
            old = entries[Int(index)].groups[name]?.members.removeValue(forKey: id)
            if entries[Int(index)].groups[name]?.members.isEmpty == true { entries[Int(index)].groups[name] = nil }
        } else {
            old = entries[Int(index)].members.removeValue(forKey: id)
        }
        if old != nil, let payer = entries[Int(index)].payers.removeValue(forKey: Membership(id, group: group)) {
            shapes.giveBack(TopicShape(of: filter), of: payer)
        }
        entries[Int(index)].version = version
        guard entries[Int(index)].isEmpty else { return }
        tree.remove(filter)
        entries[Int(index)] = Entry(filter: filter)
        free.append(index)
    }

    /// The filters that match a topic, as they were at the time of the search.
    struct Matches {
        fileprivate var entries: [Entry] = []
        /// The matching filters and their versions; topics with equal keys have the same targets.
        fileprivate(set) var key: [UInt64] = []

        /// Whether two keys contain the same filters, perhaps in different versions.
        static func haveEqualFilters(_ one: [UInt64], _ other: [UInt64]) -> Bool {
            one.count == other.count && stride(from: 0, to: one.count, by: 2).allSatisfy { one[$0] == other[$0] }
        }

        fileprivate var steps = 0
        /// The number of members of all these filters and groups. A member of several of them counts several times.
        fileprivate(set) var members = 0

        /// The work of the search: the sum of its steps, the number of matching filters, and an eighth of the members.
        var work: Int { searchWork + members / 8 }

        /// The work of the search if the members need not be looked at.
        var searchWork: Int { steps + entries.count }

        /// The ids of all members, in any order; an id may occur several times.
        var ids: [DurableSessionID] {
            entries.flatMap { entry in
                Array(entry.members.keys) + entry.groups.values.flatMap { Array($0.members.keys) }
            }
        }

        /// Returns one target for each session and each group, however many filters of a session match. If many of the
        /// sessions have the same owner, these sessions form one target.
        func targets(load: (DurableSessionID) -> DurableLoad?) -> [DurableTarget] {
            var merged: [DurableSessionID: CombinedOptions] = [:]
            var targets: [DurableTarget] = []
            for entry in entries {
                // The members of a single filter need not be merged.
                if entries.count > 1 {
                    for (id, options) in entry.members {
                        // The options are changed in place, because one session may have many filters that match.
                        if let known = merged.index(forKey: id) {
                            merged.values[known].formUnion(options)
                        } else {
                            merged[id] = CombinedOptions(options)
                        }
                    }
                }
                for (name, group) in entry.groups {
                    let group = DurableIndex.group(name, group, entry.filter, load: load)
                    if !group.members.isEmpty { targets.append(.group(group)) }
                }
            }
            func member(_ id: DurableSessionID, _ options: CombinedOptions) -> DurableMember? {
                // Nothing is queued for sessions that get publications at most once.
                options.others.qos == .atMostOnce
                    ? nil : load(id).map { DurableMember(session: id, options: options, load: $0) }
            }
            let members =
                entries.count == 1
                ? entries[0].members.compactMap { member($0, CombinedOptions($1)) }
                : merged.compactMap { member($0, $1) }
            return targets + DurableIndex.crowded(members)
        }
    }

    /// Finds the filters that match a topic, without looking at their members.
    func matches(of topic: TopicName) -> Matches {
        var matches = Matches()
        let steps = tree.forEachMatch(of: topic) { index in
            let entry = entries[Int(index)]
            matches.members += entry.members.count
            for group in entry.groups.values { matches.members += group.members.count }
            matches.entries.append(entry)
            matches.key += [UInt64(index), entry.version]
        }
        matches.steps = steps
        return matches
    }

    fileprivate static func crowded(_ members: [DurableMember]) -> [DurableTarget] {
        guard members.count >= DurableCrowd.minMembers else { return members.map { .session($0) } }
        return Dictionary(grouping: members) { $0.load.owner }.flatMap { owner, members -> [DurableTarget] in
            guard members.count >= DurableCrowd.minMembers else { return members.map { .session($0) } }
            return [.crowd(DurableCrowd(owner: owner, members: members))]
        }
    }

    /// Returns the kept members of a shared subscription, given its text; nil if there are none.
    func group(_ share: String, load: (DurableSessionID) -> DurableLoad?) -> DurableGroup? {
        guard let (entry, name) = place(of: share), let group = entries[entry].groups[name] else { return nil }
        let found = Self.group(name, group, entries[entry].filter, load: load)
        return found.members.isEmpty ? nil : found
    }

    /// Returns the group of a shared subscription, given its text, if the group was kept since its members last
    /// changed.
    func knownGroup(_ share: String) -> DurableGroup? {
        place(of: share).flatMap { entry, name in entries[entry].groups[name]?.known }
    }

    /// Keeps the group of a shared subscription until its members change.
    mutating func keep(_ group: DurableGroup, of share: String) {
        guard let (entry, name) = place(of: share) else { return }
        entries[entry].groups[name]?.known = group
    }

    /// Finds a shared subscription. Returns the index of its filter's entry, and the name of its group.
    private func place(of share: String) -> (entry: Int, group: TopicText)? {
        guard let (name, filter) = Self.parse(share), let name, let index = tree.value(of: filter) else { return nil }
        return (Int(index), TopicText(name))
    }

    fileprivate static func group(
        _ name: TopicText,
        _ group: Group,
        _ filter: TopicFilter,
        load: (DurableSessionID) -> DurableLoad?
    ) -> DurableGroup {
        let members = group.members.sorted { $0.key < $1.key }.compactMap { id, options in
            load(id).map { DurableMember(session: id, options: CombinedOptions(options), load: $0) }
        }
        return DurableGroup(name: name.rawValue, filter: filter, members: members, turn: group.turn)
    }

    /// Splits "$share/name/filter" into the group `name` and the filter; any other text is a filter without a group.
    static func parse(_ text: String) -> (group: String?, filter: TopicFilter)? {
        guard SharedFilter.isShared(text) else { return TopicFilter(text).map { (nil, $0) } }
        let rest = text.utf8.dropFirst(SharedFilter.prefix.utf8.count)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else { return nil }
        guard let filter = TopicFilter(String(text[text.utf8.index(after: slash)...])) else { return nil }
        return (String(text[rest.startIndex..<slash]), filter)
    }
}
