// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Bounds the cost of a search for the filters that match a topic. It counts the costly shapes (``TopicShape``) of the
/// filters of all clients together.
///
/// A search follows one path for each shape, however many filters have this shape. The number of shapes with few
/// wildcards and few levels is small, so these shapes are free. There could be millions of other shapes: in a filter
/// for a topic of 20 levels, each level may be either `+` or the name of the level. Thread-safe. The lock may be taken
/// while another lock is held, because no other code is called while this lock is held.
package final class ShapeBudget: Sendable {
    /// The limit on the levels of all costly shapes together. A search visits at most this many nodes for them, which
    /// takes one or two milliseconds. Kept sessions that an older version stored may add further shapes.
    ///
    /// One account or address may use at most an eighth of the limit.
    package static let limit = SharedLimit(16_384, perAccount: 2_048, perAddress: 2_048)

    private struct Place {
        let levels: Int
        /// The number of filters that have the shape, for each source of such filters.
        var users: [CommitSource: Int]
        /// The source whose share of the limit the shape uses. It is one of ``users``.
        var payer: CommitSource
    }

    private struct State {
        var places: [Int: Place] = [:]
        var shares: OwnerShares
    }

    private let state: Mutex<State>

    package init(_ limit: SharedLimit = ShapeBudget.limit) { state = Mutex(State(shares: OwnerShares(entries: limit))) }

    /// The number of levels of all costly shapes that are in use.
    package var levels: Int { state.withLock { $0.shares.tally.total.entries } }

    /// Counts a filter.
    ///
    /// - Returns: false if the filter's shape is costly and new, and there is no room for it. The filter is then not
    ///   counted.
    func take(_ shape: TopicShape, of owner: CommitSource) -> Bool {
        guard let costly = shape.costly else { return true }
        return state.withLock { state in
            let isThere = state.places[costly] != nil
            guard isThere || state.shares.take(Holding(entries: shape.depth), of: owner) else { return false }
            Self.count(costly, levels: shape.depth, of: owner, &state)
            return true
        }
    }

    /// Counts a filter that exists already, even if there is no room for it.
    func add(_ shape: TopicShape, of owner: CommitSource) {
        guard let costly = shape.costly else { return }
        state.withLock { state in
            if state.places[costly] == nil { state.shares.add(Holding(entries: shape.depth), of: owner) }
            Self.count(costly, levels: shape.depth, of: owner, &state)
        }
    }

    private static func count(_ costly: Int, levels: Int, of owner: CommitSource, _ state: inout State) {
        state.places[costly, default: Place(levels: levels, users: [:], payer: owner)].users[owner, default: 0] += 1
    }

    func giveBack(_ shape: TopicShape, of owner: CommitSource) {
        guard let costly = shape.costly else { return }
        giveBack(costly, users: 1, of: owner)
    }

    fileprivate func giveBack(_ costly: Int, users: Int, of owner: CommitSource) {
        state.withLock { state in
            guard var place = state.places[costly], let known = place.users[owner] else { return }
            place.users[owner] = known > users ? known - users : nil
            let heir = place.users[place.payer] == nil ? place.users.keys.first : place.payer
            if heir != place.payer { state.shares.add(Holding(entries: -place.levels), of: place.payer) }
            guard let heir else {
                state.places[costly] = nil
                return
            }
            if heir != place.payer { state.shares.add(Holding(entries: place.levels), of: heir) }
            place.payer = heir
            state.places[costly] = place
        }
    }
}

/// The part of a ``ShapeBudget`` that one client uses. It is given back when the last reference to the lease is gone.
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
        for (costly, users) in users { budget.giveBack(costly, users: users, of: owner) }
    }

    /// - Returns: false if there is no room for the shape of a new filter.
    package func take(_ shape: TopicShape) -> Bool {
        guard let costly = shape.costly else { return true }
        guard budget.take(shape, of: owner) else { return false }
        users.withLock { $0[costly, default: 0] += 1 }
        return true
    }

    /// Counts the shape of a filter that was accepted earlier.
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
        if isKnown { budget.giveBack(costly, users: 1, of: owner) }
    }
}
