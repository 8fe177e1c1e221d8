// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A limit that owners share. It limits the amount of all owners together, of one account, and of one address without
/// an account.
///
/// No owner can use up the total for the other owners: an owner may add to its share only if its new share is not
/// larger than the part of the total that was free before the addition. All addresses without an account together have
/// at most half of the total. So the owner that has the most is refused first, and addresses without an account are
/// refused before accounts.
package struct SharedLimit: Sendable, Hashable {
    package var total: Int
    package var perAccount: Int
    /// The limit of one address. An IPv6 /64 network counts as one address.
    package var perAddress: Int

    package init(_ total: Int, perAccount: Int = .max, perAddress: Int = .max) {
        self.total = total
        self.perAccount = perAccount
        self.perAddress = perAddress
    }

    /// Whether all owners together have so little that no owner needs to be looked up.
    fileprivate func isFarFromFull(_ adding: Int, of kind: CommitSource.Kind, total used: Int) -> Bool {
        switch kind {
        case .server: used + adding <= total
        case .account: used + adding <= min(perAccount, total / 4)
        case .address: used + adding <= min(perAddress, total / 4)
        }
    }

    /// Whether an owner may have `adding` more, given the current shares.
    fileprivate func allows(_ adding: Int, of owner: CommitSource, own: Int, anonymous: Int, total used: Int) -> Bool {
        adding <= 0 || adding <= left(of: owner.kind, own: own, anonymous: anonymous, total: used)
    }

    /// Returns the remaining room for an owner; the result may be negative.
    fileprivate func left(of kind: CommitSource.Kind, own: Int, anonymous: Int, total used: Int) -> Int {
        let left = total - used
        return switch kind {
        case .server: left
        case .account: min(perAccount, left) - own
        case .address: min(perAddress, left, total / 2 + total % 2 - anonymous) - own
        }
    }
}

/// The amounts that owners have, or the changes of these amounts. Does no I/O.
package struct OwnerTally: Sendable {
    private var holdings: [CommitSource: Holding] = [:]
    package private(set) var total = Holding()
    /// The sum over all addresses without an account.
    package private(set) var anonymous = Holding()

    package init() {}

    package subscript(owner: CommitSource) -> Holding { holdings[owner] ?? Holding() }

    package var isEmpty: Bool { holdings.isEmpty }

    package mutating func add(_ holding: Holding, of owner: CommitSource) {
        total += holding
        if owner.kind == .address { anonymous += holding }
        guard holding != Holding() else { return }
        guard let index = holdings.index(forKey: owner) else {
            holdings[owner] = holding
            return
        }
        holdings.values[index] += holding
        if holdings.values[index] == Holding() { holdings.remove(at: index) }
    }

    package mutating func add(_ other: OwnerTally) {
        for (owner, holding) in other.holdings { add(holding, of: owner) }
    }
}

/// The parts of a bounded resource that owners have. This type decides whether an owner may have more. Does no I/O.
package struct OwnerShares: Sendable {
    package let entries: SharedLimit
    package let bytes: SharedLimit
    package private(set) var tally = OwnerTally()

    package init(entries: SharedLimit, bytes: SharedLimit = SharedLimit(.max)) {
        self.entries = entries
        self.bytes = bytes
    }

    /// Whether an owner may have one more holding.
    ///
    /// - Parameters:
    ///   - changes: the changes that ``tally`` does not include yet.
    ///   - old: the holding that the new holding replaces.
    ///   - payer: the owner of the replaced holding.
    package func hasRoom(
        for holding: Holding,
        of owner: CommitSource,
        with changes: OwnerTally? = nil,
        replacing old: Holding = Holding(),
        of payer: CommitSource = .server
    ) -> Bool {
        var total = tally.total
        total += -old
        if let changes { total += changes.total }
        let kind = owner.kind
        if entries.isFarFromFull(holding.entries, of: kind, total: total.entries),
            bytes.isFarFromFull(holding.bytes, of: kind, total: total.bytes)
        {
            return true
        }
        var own = tally[owner]
        var anonymous = tally.anonymous
        if payer == owner { own += -old }
        if payer.kind == .address { anonymous += -old }
        if let changes {
            own += changes[owner]
            anonymous += changes.anonymous
        }
        return entries.allows(
            holding.entries,
            of: owner,
            own: own.entries,
            anonymous: anonymous.entries,
            total: total.entries
        )
            && bytes.allows(
                holding.bytes,
                of: owner,
                own: own.bytes,
                anonymous: anonymous.bytes,
                total: total.bytes
            )
    }

    /// Returns the number of further holdings that an owner may have, at most `count`. Each of these holdings has one
    /// entry and `weight` bytes.
    package func room(for count: Int, bytes weight: Int, of owner: CommitSource) -> Int {
        let (own, anonymous, total) = (tally[owner], tally.anonymous, tally.total)
        let entries = entries.left(
            of: owner.kind,
            own: own.entries,
            anonymous: anonymous.entries,
            total: total.entries
        )
        let bytes = bytes.left(of: owner.kind, own: own.bytes, anonymous: anonymous.bytes, total: total.bytes)
        return max(0, min(count, entries, bytes / max(1, weight)))
    }

    /// Counts a holding of an owner, if there is room for it.
    ///
    /// - Returns: false if there is no room; in this case, nothing is counted.
    package mutating func take(_ holding: Holding, of owner: CommitSource) -> Bool {
        guard hasRoom(for: holding, of: owner) else { return false }
        tally.add(holding, of: owner)
        return true
    }

    package mutating func add(_ holding: Holding, of owner: CommitSource) { tally.add(holding, of: owner) }

    package mutating func add(_ changes: OwnerTally) { tally.add(changes) }
}
