// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The seats (``DurableState/Seat``) by session key, and the keys of each owner, so that an operation on one account
/// need not scan all seats. Does no I/O; owned by ``DurableState``.
struct DurableSeats {
    private var seats: [SessionKey: DurableState.Seat] = [:]
    /// The keys by owner, except those of anonymous clients: no operation concerns all sessions of anonymous clients.
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

    /// Returns the keys of an owner; none for ``SessionOwner/anonymous``.
    func keys(of owner: SessionOwner) -> [SessionKey] { Array(keys[owner, default: []]) }
}

extension DurableState.Seat {
    /// The connection that asked last for the session, among those that have it or are about to get it.
    var newest: (any DurableAttachment)? {
        if let waiting { return waiting.attachment }
        return switch phase {
        case .vacant, .closing: nil
        case .opening(let applicant): applicant.attachment
        case .occupied(let attachment): attachment
        }
    }
}
