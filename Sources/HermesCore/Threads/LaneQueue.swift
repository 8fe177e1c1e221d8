// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// A bounded queue with two lanes. The first lane has priority.
///
/// Within a lane, sources (such as network addresses) take turns. Within a source, its owners (such as accounts) take
/// turns. The turns do not depend on the number of waiting items. A full lane still accepts an item of a source that
/// has fewer items than another source; the source with the most items then loses an item. Within one source, owners
/// are compared in the same way. So no source or owner can fill a lane and shut out others.
struct LaneQueue<Item> {
    /// The place of an item in the queue: its lane, source and owner.
    struct Place {
        let isFirst: Bool
        let source: String
        let owner: String
    }

    /// The outcome for an item.
    enum Outcome {
        case waits
        /// The item waits in place of this other item, which was removed.
        case replaces(Item)
        case refused
    }

    /// The owners of one source.
    fileprivate struct Source {
        var owners = TurnTable<String, Deque<Item>>()
        var count = 0
    }

    fileprivate struct Lane {
        var sources = TurnTable<String, Source>()
        var count = 0
    }

    private let maxCount: Int
    private let maxCountOfOne: Int
    private var lanes = [Lane(), Lane()]
    private var sinceSecond = 0

    /// The number of waiting items.
    var count: Int { lanes[0].count + lanes[1].count }

    /// The number of items that are taken from the first lane before one item is taken from the second lane. So the
    /// second lane may be slow, but it never gets stuck.
    static var firstLaneRun: Int { 7 }

    /// - Parameters:
    ///   - maxCount: the maximum number of items that may wait in each lane. Each lane has its own limit, so a full
    ///     lane does not reduce the room of the other lane.
    ///   - maxCountOfOne: the maximum number of items of one owner that may wait in a lane.
    init(maxCount: Int, maxCountOfOne: Int) {
        self.maxCount = maxCount
        self.maxCountOfOne = maxCountOfOne
    }

    mutating func append(_ item: Item, at place: Place) -> Outcome {
        let index = place.isFirst ? 0 : 1
        let source = lanes[index].sources[place.source]
        guard source?.owners[place.owner]?.count ?? 0 < maxCountOfOne else { return .refused }
        var replaced: Item?
        if lanes[index].count >= maxCount {
            replaced = lanes[index].makeRoom(for: place)
            guard replaced != nil else { return .refused }
        }
        lanes[index].sources.update(place.source, default: Source()) { source in
            source.owners.update(place.owner, default: []) { $0.append(item) }
            source.count += 1
        }
        lanes[index].count += 1
        if let replaced { return .replaces(replaced) }
        return .waits
    }

    mutating func popFirst() -> Item? {
        let isSecondDue = sinceSecond >= Self.firstLaneRun && lanes[1].count > 0
        let index = lanes[0].count > 0 && !isSecondDue ? 0 : 1
        sinceSecond = index == 0 ? sinceSecond + 1 : 0
        return lanes[index].popFirst()
    }
}

extension LaneQueue.Lane {
    fileprivate mutating func popFirst() -> Item? {
        guard count > 0 else { return nil }
        count -= 1
        return sources.next { source in
            source.count -= 1
            let item = source.owners.next { items in
                (items.popFirst(), isEmpty: items.isEmpty)
            }
            return (item, isEmpty: source.count == 0)
        }
    }

    /// Removes one item from the source with the most items. Within that source, removes the newest item of the owner
    /// with the most items.
    ///
    /// - Returns: nil if the source with the most items does not have more items than the source of `place` would have
    ///   with the new item. If both sources are the same, owners are compared instead.
    fileprivate mutating func makeRoom(for place: LaneQueue.Place) -> Item? {
        guard let most = sources.keyOfGreatest({ $0.count }), let greatest = sources[most] else { return nil }
        let own = sources[place.source]
        guard let owner = greatest.owners.keyOfGreatest({ $0.count }) else { return nil }
        let isFair =
            most == place.source
            ? greatest.owners[owner]?.count ?? 0 > (own?.owners[place.owner]?.count ?? 0) + 1
            : greatest.count > (own?.count ?? 0) + 1
        guard isFair else { return nil }
        count -= 1
        return sources.take(of: most) { source in
            source.count -= 1
            let item = source.owners.take(of: owner) { items in (items.popLast(), isEmpty: items.isEmpty) }
            return (item, isEmpty: source.count == 0)
        }
    }
}
