// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Makes, lists and revokes invitations. Safe to call from anywhere.
package final class InvitationService: Sendable {
    /// The longest name, in characters.
    package static let maxNameCharacters = 64
    package static let maxUses = 1_000_000
    /// The longest time an invitation is good for.
    package static let maxDays = 3650

    private let store: any InvitationStore
    private let time: any TimeSource

    package init(store: any InvitationStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Makes an invitation.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters of printable ASCII without blanks.
    ///   - uses: how many accounts it is good for.
    ///   - days: how long; 0: for ever.
    /// - Returns: the invitation, and its code, which nobody can tell again.
    /// - Throws: `.invalidArgument`, `.nameTaken`, `.storageUnavailable`.
    package func create(
        name: String,
        uses: Int,
        days: Int
    ) async throws(HermesError) -> (invitation: Invitation, code: String) {
        let isPlain = name.unicodeScalars.allSatisfy { (0x21...0x7E).contains($0.value) }
        guard (1...Self.maxNameCharacters).contains(name.utf8.count), isPlain else {
            throw HermesError(
                .invalidArgument,
                "The name of an invitation is 1 to \(Self.maxNameCharacters) characters of printable ASCII without blanks."
            )
        }
        guard (1...Self.maxUses).contains(uses) else {
            throw HermesError(.invalidArgument, "An invitation is good for 1 to \(Self.maxUses) accounts.")
        }
        guard (0...Self.maxDays).contains(days) else {
            throw HermesError(.invalidArgument, "An invitation is good for up to \(Self.maxDays) days; 0 is for ever.")
        }
        let code = InvitationCode()
        guard let hash = InvitationCode.hash(of: code.text) else {
            throw HermesError(.internalError, "The invitation could not be made.")
        }
        let now = time.now()
        let new = NewInvitation(
            name: name,
            hash: hash,
            uses: uses,
            expiresAt: days > 0 ? now.advanced(by: .seconds(days * 86_400)) : nil
        )
        return (try await store.create(new, now: now), code.text)
    }

    /// All invitations, oldest first, those that are used up or over among them.
    package func invitations() async throws(HermesError) -> [Invitation] { try await store.invitations() }

    /// Takes an invitation back at once; accounts that were made with it stay.
    /// - Throws: `.notFound`, `.storageUnavailable`.
    package func revoke(name: String) async throws(HermesError) { try await store.revoke(invitationNamed: name) }
}
