// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Waiting items in two lanes, the first of which has priority. Within a lane, owners take turns, however many items
/// one has. Bounded, in total and per owner.
struct LaneQueue<Item> {
    private struct Lane {
        /// The owners with items, in turn, each once.
        var turns = Deque<String>()
        var items: [String: Deque<Item>] = [:]
    }

    private let maxCount: Int
    private let maxCountOfOne: Int
    private var lanes = [Lane(), Lane()]
    private var sinceSecond = 0
    private(set) var count = 0

    /// The number of items of the first lane before one of the second, which is therefore slow at worst, never stuck.
    static var firstLaneRun: Int { 7 }

    /// - Parameters:
    ///   - maxCount: the number of waiting items in each lane, so that neither uses the other's room.
    ///   - maxCountOfOne: the number of waiting items of one owner.
    init(maxCount: Int, maxCountOfOne: Int) {
        self.maxCount = maxCount
        self.maxCountOfOne = maxCountOfOne
        counts = [0, 0]
    }

    private var counts: [Int]

    /// - Returns: false if too much waits.
    mutating func append(_ item: Item, isFirst: Bool, of owner: String) -> Bool {
        let lane = isFirst ? 0 : 1
        guard counts[lane] < maxCount, lanes[lane].items[owner]?.count ?? 0 < maxCountOfOne else { return false }
        if lanes[lane].items[owner] == nil { lanes[lane].turns.append(owner) }
        lanes[lane].items[owner, default: []].append(item)
        counts[lane] += 1
        count += 1
        return true
    }

    mutating func popFirst() -> Item? {
        let isSecondDue = sinceSecond >= Self.firstLaneRun && counts[1] > 0
        let lane = counts[0] > 0 && !isSecondDue ? 0 : 1
        sinceSecond = lane == 0 ? sinceSecond + 1 : 0
        guard let owner = lanes[lane].turns.popFirst(), var items = lanes[lane].items.removeValue(forKey: owner),
            let item = items.popFirst()
        else { return nil }
        if !items.isEmpty {
            lanes[lane].items[owner] = items
            lanes[lane].turns.append(owner)
        }
        counts[lane] -= 1
        count -= 1
        return item
    }
}
