// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Invitations.
extension MemoryState {
    mutating func create(_ new: NewInvitation, now: Timestamp) throws(HermesError) -> Invitation {
        try checkRoom(for: 0)
        let made = invitations.insert(new.hash, named: new.name) { id in
            Invitation(id: id, name: new.name, uses: new.uses, createdAt: now, expiresAt: new.expiresAt)
        }
        guard let made else {
            throw StoreRefusals.invitationNameTaken
        }
        return made
    }

    mutating func use(_ hash: TokenHash, at now: Timestamp) throws(HermesError) {
        guard invitations[hash]?.isValid(at: now) ?? false else { throw MemoryStore.noSuchInvitation }
        invitations.change(hash) { old in
            Invitation(
                id: old.id,
                name: old.name,
                uses: old.uses,
                used: old.used + 1,
                createdAt: old.createdAt,
                expiresAt: old.expiresAt
            )
        }
    }

    mutating func revoke(invitationNamed name: String) throws(HermesError) {
        guard invitations.remove(named: name) else {
            throw StoreRefusals.noSuchInvitation
        }
    }
}

extension MemoryStore: InvitationStore {
    package func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation {
        try write { (state) throws(HermesError) in try state.create(invitation, now: now) }
    }

    package func invitations() async throws(HermesError) -> [Invitation] {
        try read { (state) throws(HermesError) in state.invitations.all }
    }

    package func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation? {
        try read { (state) throws(HermesError) in state.invitations[hash] }
    }

    package func revoke(invitationNamed name: String) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.revoke(invitationNamed: name) }
    }
}
