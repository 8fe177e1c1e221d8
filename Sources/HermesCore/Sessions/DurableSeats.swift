// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Seats by key, and the keys of each owner, so that operations on one account do not scan all seats. Pure;
/// owner: ``DurableState``.
struct DurableSeats {
    private var seats: [SessionKey: DurableState.Seat] = [:]
    /// The keys by owner, except those of anonymous clients, which no end concerns.
    private var keys: [SessionOwner: Set<SessionKey>] = [:]

    subscript(key: SessionKey) -> DurableState.Seat? {
        get { seats[key] }
        set {
            let wasThere = seats[key] != nil
            seats[key] = newValue
            guard wasThere != (newValue != nil), key.owner != .anonymous else { return }
            if newValue != nil {
                keys[key.owner, default: []].insert(key)
            } else {
                keys[key.owner]?.remove(key)
                if keys[key.owner]?.isEmpty == true { keys[key.owner] = nil }
            }
        }
    }

    var all: some Collection<DurableState.Seat> { seats.values }

    /// The owners of seats, except ``SessionOwner/anonymous``.
    var owners: [SessionOwner] { Array(keys.keys) }

    /// The keys of an owner.
    func keys(of owner: SessionOwner) -> [SessionKey] { Array(keys[owner, default: []]) }
}
