// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication on its way to another node.
package struct NodePublication: Sendable {
    package let publication: Publication
    /// The shared subscription whose member gets it (``SharedGroups/key(group:filter:)``); nil: all subscribers do.
    package let share: TopicFilter?
    /// The nodes that had no member for it.
    package let refused: NodeSet

    package init(_ publication: Publication, share: TopicFilter? = nil, refused: NodeSet = NodeSet()) {
        self.publication = publication
        self.share = share
        self.refused = refused
    }
}

/// What one shard has for the other nodes by the end of the tick.
struct NodeOutput {
    let links: TopicLinks
    private let loop: Int
    private var publications: [NodeID: [NodePublication]] = [:]
    /// The number of the last message to each node.
    private var numbers: [NodeID: UInt64] = [:]

    init(_ links: TopicLinks, loop: Int) {
        self.links = links
        self.loop = loop
    }

    mutating func append(_ publication: NodePublication, to node: NodeID) {
        publications[node, default: []].append(publication)
    }

    mutating func handOver() {
        links.tellChanges()
        guard !publications.isEmpty else { return }
        for (node, publications) in publications {
            let number = numbers[node, default: 0] + 1
            numbers[node] = number
            links.send(publications, loop: loop, number: number, to: node)
        }
        publications = [:]
    }
}

/// The exchange with other nodes. To a shard, a node is one more shard: its interest comes as theirs does, and what is
/// for it goes out at the end of the tick.
extension TopicShard {
    /// Subscriptions to a filter were added, or removed: the other nodes are told at the end of the tick.
    func changed(_ filter: FilterMembers, _ options: SubscriptionOptions, by count: Int) {
        guard let links = nodes?.links, !options.isOfThisNode else { return }
        links.change(TopicInterest.Key(filter: TopicFilter(of: filter)), by: count)
        scheduleFlush()
    }

    /// The number of a shared subscription's members on this node has changed. Members whose sessions are kept do not
    /// count: what they get with QoS 1 and 2 comes from the store of their node.
    func changed(_ group: SharedGroup, _ seat: SharedGroup.Seat, by count: Int) {
        guard let links = nodes?.links, !seat.isKept else { return }
        links.change(TopicInterest.Key(filter: group.filter, share: group.key), by: count)
        scheduleFlush()
    }

    func enqueue(_ batch: PublicationBatch, toNode number: Int) {
        guard let node = UInt8(exactly: number).flatMap(NodeID.init(rawValue:)) else { return }
        switch batch {
        case .one(let publication): nodes?.append(NodePublication(publication.elsewhere), to: node)
        case .run(let run):
            for index in 0..<run.count { nodes?.append(NodePublication(run[index].elsewhere), to: node) }
        }
        scheduleFlush()
    }

    /// Sends a publication to a node that has members of a shared subscription.
    ///
    /// - Parameter refused: the nodes that had no member for it.
    func enqueue(_ publication: Publication, sharing key: TopicFilter, refused: NodeSet, to node: NodeID) {
        nodes?.append(NodePublication(publication.elsewhere, share: key, refused: refused), to: node)
        scheduleFlush()
    }

    /// Delivers what other nodes sent.
    func deliver(received publications: [NodePublication]) {
        takeInterest()
        var forAll: [PublicationBatch] = []
        for item in publications {
            if let key = item.share {
                inbox?.completed(item.publication.weight)
                deliver(item, sharing: key)
                continue
            }
            if let route = existingRoute(to: item.publication.topic) {
                refresh(route)
                _ = enqueue(.one(item.publication), to: route.shards.below(mailboxes.count))
            }
            forAll.append(.one(item.publication))
        }
        deliver(handedOver: forAll)
    }

    private func deliver(_ item: NodePublication, sharing key: TopicFilter) {
        if let group = sharedGroups.group(of: key, home: index) {
            group.take(item, on: self)
        } else if let home = sharedGroups.home(of: key), home != index {
            // The group ended, and began anew on another loop.
            mailboxes[home].post(received: [item])
        } else {
            inbox?.dropped(1)
        }
    }

    /// So many members of a shared subscription are on another node. Called on one loop for each key.
    func note(_ members: Int, on node: NodeID, of key: TopicFilter, _ filter: TopicFilter) {
        let change: (group: SharedGroup, isLast: Bool)
        if members > 0 {
            let group = join(key, filter)
            // It counts once.
            if !sharedGroups.sit(node, in: group) { _ = sharedGroups.leave(group) }
            change = (group, false)
        } else {
            guard let left = sharedGroups.leave(key, node) else { return }
            change = left
        }
        let (group, isLast) = change
        atHome(of: group) { group.note(members, on: node, isLast: isLast, shard: $0) }
    }
}
