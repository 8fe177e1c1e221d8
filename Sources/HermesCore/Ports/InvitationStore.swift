// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores invitations. Each change is durable when it returns. They are used up by ``AccountStore/create(_:now:)``, in the commit
/// that creates the account.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `InvitationStoreConformance` of HermesTestKit.
package protocol InvitationStore: Sendable {
    /// - Throws: `.nameTaken`, `.storageUnavailable`.
    func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation

    /// All invitations, oldest first.
    func invitations() async throws(HermesError) -> [Invitation]

    /// The invitation with this code; nil if there is none, or none any more.
    func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation?

    /// - Throws: `.notFound`, `.storageUnavailable`.
    func revoke(invitationNamed name: String) async throws(HermesError)
}

extension InvitationStore {
    /// Why an invitation is of no use.
    package static var noSuchInvitation: HermesError {
        HermesError(.invitationRequired, "the invitation is unknown, used up or expired; ask for another")
    }
}
