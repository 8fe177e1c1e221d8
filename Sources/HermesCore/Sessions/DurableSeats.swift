// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The seats (``DurableState/Seat``) by session key, and the keys of each owner. Because of these keys, an operation on
/// one account need not scan all seats. This type does no I/O. ``DurableState`` owns it.
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

extension DurableState {
    /// A connection that requests a session. It is a class, so that a seat without an applicant needs memory for only
    /// two references. Most seats have no applicant.
    final class Applicant: Sendable {
        let attachment: any DurableAttachment
        let clean: Bool
        /// The time for which the session is kept without a connection. Nil means forever. Zero means that the session
        /// ends with the connection.
        let expiry: Duration?
        /// The time at which the connection requested the session.
        let at: Timestamp
        let completion: @Sendable (Result<DurableOpening, HermesError>) -> Void

        init(
            attachment: any DurableAttachment,
            clean: Bool,
            expiry: Duration?,
            at: Timestamp,
            completion: @escaping @Sendable (Result<DurableOpening, HermesError>) -> Void
        ) {
            self.attachment = attachment
            self.clean = clean
            self.expiry = expiry
            self.at = at
            self.completion = completion
        }
    }

    /// The seat of a session key: its session, and the connection that has the session or is about to get it.
    struct Seat {
        enum Phase {
            case vacant
            /// The end of the session's last connection is being stored.
            case closing
            /// The opening of the session is being stored. Before that, an old session is removed if necessary.
            case opening(Applicant)
            case occupied(any DurableAttachment)
        }

        var phase = Phase.vacant
        /// The connection that waits until the present one leaves.
        var waiting: Applicant?
        var session: DurableSessionID
        /// Whether the owner is gone. If so, the session ends together with the connection that it has or is about to
        /// get.
        var isOwnerGone = false
        /// Whether the connection was told that another node has opened the session.
        var isReplaced = false
    }
}

extension DurableState.Seat {
    /// The connection that requested the session last, of all connections that have it or are about to get it.
    var newest: (any DurableAttachment)? {
        if let waiting { return waiting.attachment }
        return switch phase {
        case .vacant, .closing: nil
        case .opening(let applicant): applicant.attachment
        case .occupied(let attachment): attachment
        }
    }
}
