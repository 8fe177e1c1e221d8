// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Invitations.
extension MemoryState {
    mutating func create(_ new: NewInvitation, now: Timestamp) throws(HermesError) -> Invitation {
        try checkRoom(for: 0)
        guard !invitations.contains(where: { $0.invitation.name == new.name }) else {
            throw HermesError(
                .nameTaken,
                "There is an invitation of this name already. Choose another, or revoke that one."
            )
        }
        lastInvitation += 1
        let invitation = Invitation(
            id: lastInvitation,
            name: new.name,
            uses: new.uses,
            createdAt: now,
            expiresAt: new.expiresAt
        )
        invitations.append((new.hash, invitation))
        return invitation
    }

    mutating func use(_ hash: TokenHash, at now: Timestamp) throws(HermesError) {
        guard let index = invitations.firstIndex(where: { $0.hash == hash && $0.invitation.isValid(at: now) }) else {
            throw MemoryStore.noSuchInvitation
        }
        let old = invitations[index].invitation
        invitations[index].invitation = Invitation(
            id: old.id,
            name: old.name,
            uses: old.uses,
            used: old.used + 1,
            createdAt: old.createdAt,
            expiresAt: old.expiresAt
        )
    }

    mutating func revoke(invitationNamed name: String) throws(HermesError) {
        guard let index = invitations.firstIndex(where: { $0.invitation.name == name }) else {
            throw HermesError(.notFound, "There is no invitation of this name.")
        }
        invitations.remove(at: index)
    }
}

extension MemoryStore: InvitationStore {
    package func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation {
        try run { (state) throws(HermesError) in try state.create(invitation, now: now) }
    }

    package func invitations() async throws(HermesError) -> [Invitation] {
        try run { (state) throws(HermesError) in state.invitations.map(\.invitation) }
    }

    package func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation? {
        try run { (state) throws(HermesError) in state.invitations.first { $0.hash == hash }?.invitation }
    }

    package func revoke(invitationNamed name: String) async throws(HermesError) {
        try run { (state) throws(HermesError) in try state.revoke(invitationNamed: name) }
    }
}
