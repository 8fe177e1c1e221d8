// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication on its way to another node.
package struct NodePublication: Sendable {
    package let publication: Publication
    /// The key of the shared subscription whose member gets the publication (``SharedGroups/key(group:filter:)``); nil
    /// if all subscribers get the publication.
    package let share: TopicFilter?
    /// The nodes that have refused the publication, because no member there could accept it.
    package let refused: NodeSet

    package init(_ publication: Publication, share: TopicFilter? = nil, refused: NodeSet = NodeSet()) {
        self.publication = publication
        self.share = share
        self.refused = refused
    }
}

/// The publications that one shard collects for the other nodes until the end of the tick (the loop's iteration).
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

/// The exchange with other nodes. A shard treats another node like one more shard. The interest of the node arrives
/// like that of a shard, and publications for the node are sent at the end of the tick.
extension TopicShard {
    /// Records that subscriptions to a filter were added or removed. The other nodes are told at the end of the tick.
    func changed(_ filter: FilterMembers, _ options: SubscriptionOptions, by count: Int) {
        guard let links = nodes?.links, !options.isOfThisNode else { return }
        links.change(TopicInterest.Key(filter: TopicFilter(of: filter)), by: count)
        scheduleFlush()
    }

    /// Records that the number of a shared subscription's members on this node has changed. Members whose sessions are
    /// kept do not count, because they get publications with QoS 1 and 2 from the store of their node.
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
    /// - Parameter refused: the nodes that have refused the publication, because no member there could accept it.
    func enqueue(_ publication: Publication, sharing key: TopicFilter, refused: NodeSet, to node: NodeID) {
        nodes?.append(NodePublication(publication.elsewhere, share: key, refused: refused), to: node)
        scheduleFlush()
    }

    /// Delivers the publications that other nodes sent.
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
            // The group ended, and a new group with the same key began on another loop.
            mailboxes[home].post(received: [item])
        } else {
            inbox?.dropped(1)
        }
    }

    /// Takes over the number of a shared subscription's members on another node. All calls for a key are on the same
    /// loop.
    func note(_ members: Int, on node: NodeID, of key: TopicFilter, _ filter: TopicFilter) {
        let change: (group: SharedGroup, isLast: Bool)
        if members > 0 {
            let group = join(key, filter)
            // A node counts as one member of the group, however many members it has.
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
