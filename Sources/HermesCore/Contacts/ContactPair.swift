// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The wishes of one account about another account, as one stored row.
package struct ContactRow: Sendable, Hashable {
    /// Whether the account wants the contact: it has sent or accepted a request.
    package var wants: Bool
    package var blocks: Bool

    package init(wants: Bool = false, blocks: Bool = false) {
        self.wants = wants
        self.blocks = blocks
    }
}

/// The relation of two accounts, with the rules of contacts. Does no I/O; the stores apply it inside a commit.
///
/// The two rows determine the relation. A block clears ``ContactRow/wants`` in both rows, so that no part of the
/// relation returns when the block ends.
package struct ContactPair: Sendable, Hashable {
    /// The row of the acting account.
    package var own: ContactRow
    /// The row of the other account.
    package var other: ContactRow

    package init(own: ContactRow = ContactRow(), other: ContactRow = ContactRow()) {
        self.own = own
        self.other = other
    }

    /// The relation as the acting account sees it; nil if there is no relation, or if the relation is only a block by
    /// the other account.
    package var state: ContactState? {
        if own.blocks { return .blocked }
        switch (own.wants, other.wants) {
        case (true, true): return .accepted
        case (true, false): return .requested
        case (false, true): return .incoming
        case (false, false): return nil
        }
    }

    /// Applies an action of the acting account.
    ///
    /// - Returns: the event for the other account; nil if nothing changed for that account.
    /// - Throws: `.forbidden` for a request if one of the two accounts blocks the other; `.notFound` if there is no
    ///   request to answer, or no relation to end.
    package mutating func apply(_ command: ContactCommand) throws(HermesError) -> ContactEvent.Kind? {
        switch command {
        case .request: try request()
        case .accept: try accept()
        case .decline: try decline()
        case .remove: try remove()
        case .block: block()
        case .unblock: unblock()
        }
    }

    private mutating func request() throws(HermesError) -> ContactEvent.Kind? {
        guard !own.blocks else { throw HermesError(.forbidden, "you block this account; unblock it first") }
        guard !other.blocks else { throw Self.blockedByOther }
        switch state {
        case .accepted, .requested, .blocked:
            return nil
        case .incoming:
            // Both accounts have asked. This counts as acceptance.
            own.wants = true
            return .accepted
        case nil:
            own.wants = true
            return .requested
        }
    }

    private mutating func accept() throws(HermesError) -> ContactEvent.Kind? {
        switch state {
        case .accepted:
            return nil
        case .incoming:
            own.wants = true
            return .accepted
        case .requested, .blocked, nil:
            throw Self.noRequest
        }
    }

    private mutating func decline() throws(HermesError) -> ContactEvent.Kind? {
        switch state {
        case .incoming:
            other.wants = false
            return .declined
        case .accepted, .requested, .blocked, nil:
            throw Self.noRequest
        }
    }

    private mutating func remove() throws(HermesError) -> ContactEvent.Kind? {
        switch state {
        case .accepted, .requested:
            own.wants = false
            other.wants = false
            return .removed
        case .incoming:
            return try decline()
        case .blocked, nil:
            throw HermesError(.notFound, "this account is not a contact")
        }
    }

    /// The event for the other account when the acting account is deleted; nil if the other account needs no event.
    package var farewell: ContactEvent.Kind? {
        switch state {
        case .accepted, .requested: .removed
        case .incoming: .declined
        case .blocked, nil: nil
        }
    }

    private mutating func block() -> ContactEvent.Kind? {
        defer {
            own = ContactRow(wants: false, blocks: true)
            other.wants = false
        }
        switch state {
        case .accepted, .requested: return .removed
        case .incoming: return .declined
        case .blocked, nil: return nil
        }
    }

    private mutating func unblock() -> ContactEvent.Kind? {
        own.blocks = false
        return nil
    }

    /// The error for a contact request, a message, or an addition to a group, if the other account has blocked the
    /// acting account.
    package static let blockedByOther = HermesError(.forbidden, "this account does not accept anything from you")
    /// The error for an account that is not a contact, on a server where only contacts may write to each other.
    package static let notAContact = HermesError(
        .forbidden,
        "only contacts can write to each other here; send a contact request first"
    )
    private static let noRequest = HermesError(.notFound, "this account has not asked to be a contact")
}
