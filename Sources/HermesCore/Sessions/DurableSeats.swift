// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Seats by key, and the client ids of each owner, so that operations on one account do not scan all seats. Pure;
/// owner: ``DurableState``.
struct DurableSeats {
    private var seats: [SessionKey: DurableState.Seat] = [:]
    /// The client ids by owner, except those of anonymous clients, which no end concerns.
    private var clientIDs: [SessionOwner: Set<String>] = [:]

    subscript(key: SessionKey) -> DurableState.Seat? {
        get { seats[key] }
        set {
            let wasThere = seats[key] != nil
            seats[key] = newValue
            guard wasThere != (newValue != nil), key.owner != .anonymous else { return }
            if newValue != nil {
                clientIDs[key.owner, default: []].insert(key.clientID)
            } else {
                clientIDs[key.owner]?.remove(key.clientID)
                if clientIDs[key.owner]?.isEmpty == true { clientIDs[key.owner] = nil }
            }
        }
    }

    /// The keys of an owner.
    func keys(of owner: SessionOwner) -> [SessionKey] {
        clientIDs[owner, default: []].map { SessionKey(owner: owner, clientID: $0) }
    }
}
