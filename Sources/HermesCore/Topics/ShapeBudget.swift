// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Bounds what all filters together cost a search for those of a topic: the costly shapes that they have, whoever has
/// them.
///
/// A search follows one path for each shape, however many filters have it. The shapes with few wildcards and few levels
/// are few, so they are free. The others could be millions: of a topic of 20 levels, each may be `+` or its name.
/// Thread-safe.
package final class ShapeBudget: Sendable {
    /// The levels of all costly shapes together: a search visits no more nodes for them, in a millisecond or two.
    ///
    /// Nobody takes all: an account or address has an eighth at most.
    package static let limit = SharedLimit(16_384, perAccount: 2_048, perAddress: 2_048)

    private struct Place {
        /// Those of the deepest filter.
        var levels: Int
        /// The filters of clients, and of kept sessions, that have the shape.
        var users: Int
        /// The one who brought it.
        let owner: CommitSource
    }

    private struct State {
        var places: [Int: Place] = [:]
        var shares: OwnerShares
    }

    private let state: Mutex<State>

    package init(_ limit: SharedLimit = ShapeBudget.limit) { state = Mutex(State(shares: OwnerShares(entries: limit))) }

    /// The levels of all costly shapes that are in use.
    package var levels: Int { state.withLock { $0.shares.tally.total.entries } }

    /// Counts a filter.
    ///
    /// - Returns: false if its shape is costly, and there is no room for it. Then it is not counted.
    func take(_ shape: TopicShape, of owner: CommitSource) -> Bool {
        guard let costly = shape.costly else { return true }
        return state.withLock { state in
            guard let known = state.places[costly] else {
                guard state.shares.take(Holding(entries: shape.depth), of: owner) else { return false }
                state.places[costly] = Place(levels: shape.depth, users: 1, owner: owner)
                return true
            }
            let more = max(0, shape.depth - known.levels)
            guard state.shares.take(Holding(entries: more), of: known.owner) else { return false }
            state.places[costly]?.levels += more
            state.places[costly]?.users += 1
            return true
        }
    }

    /// Counts a filter that is there already, with room or without.
    func add(_ shape: TopicShape, of owner: CommitSource = .server) {
        guard let costly = shape.costly else { return }
        state.withLock { state in
            let known = state.places[costly] ?? Place(levels: 0, users: 0, owner: owner)
            let more = max(0, shape.depth - known.levels)
            state.shares.add(Holding(entries: more), of: known.owner)
            state.places[costly] = Place(levels: known.levels + more, users: known.users + 1, owner: known.owner)
        }
    }

    func giveBack(_ shape: TopicShape) {
        guard let costly = shape.costly else { return }
        giveBack(costly, users: 1)
    }

    fileprivate func giveBack(_ costly: Int, users: Int) {
        state.withLock { state in
            guard let known = state.places[costly] else { return }
            if known.users > users {
                state.places[costly]?.users -= users
            } else {
                state.places[costly] = nil
                state.shares.add(Holding(entries: -known.levels), of: known.owner)
            }
        }
    }
}

/// The part of a ``ShapeBudget`` that one client uses; given back with the last reference.
///
/// Thread-safe.
package final class ShapeLease: Sendable {
    private let budget: ShapeBudget
    private let owner: CommitSource
    private let users = Mutex<[Int: Int]>([:])

    package init(_ budget: ShapeBudget, of owner: CommitSource) {
        self.budget = budget
        self.owner = owner
    }

    deinit {
        let users = users.withLock { $0 }
        for (costly, users) in users { budget.giveBack(costly, users: users) }
    }

    /// - Returns: false if there is no room for the shape of a new filter.
    package func take(_ shape: TopicShape) -> Bool {
        guard let costly = shape.costly else { return true }
        guard budget.take(shape, of: owner) else { return false }
        users.withLock { $0[costly, default: 0] += 1 }
        return true
    }

    /// Counts the shape of a filter that was granted before.
    package func add(_ shape: TopicShape) {
        guard let costly = shape.costly else { return }
        budget.add(shape, of: owner)
        users.withLock { $0[costly, default: 0] += 1 }
    }

    package func giveBack(_ shape: TopicShape) {
        guard let costly = shape.costly else { return }
        let isKnown = users.withLock { users in
            guard let count = users[costly] else { return false }
            users[costly] = count > 1 ? count - 1 : nil
            return true
        }
        if isKnown { budget.giveBack(costly, users: 1) }
    }
}
