// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores invitations. Each change is durable when the call returns. ``AccountStore/create(_:now:)`` counts a use of an
/// invitation in the commit that creates the account.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `InvitationStoreConformance` of HermesTestKit.
package protocol InvitationStore: Sendable {
    /// - Throws: `.nameTaken`, `.storageUnavailable`.
    func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation

    /// Returns all invitations, the oldest first.
    func invitations() async throws(HermesError) -> [Invitation]

    /// Returns the invitation with this code; nil if there is none, or if it was revoked.
    func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation?

    /// - Throws: `.notFound`, `.storageUnavailable`.
    func revoke(invitationNamed name: String) async throws(HermesError)
}

extension InvitationStore {
    /// The error for an unusable invitation.
    package static var noSuchInvitation: HermesError {
        HermesError(.invitationRequired, "the invitation is unknown, used up or expired; ask for another")
    }
}
