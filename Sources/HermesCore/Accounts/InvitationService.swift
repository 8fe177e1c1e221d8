// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Creates, lists and revokes invitations. Thread-safe.
package final class InvitationService: Sendable {
    /// The longest name, in characters.
    package static let maxNameCharacters = 64
    package static let maxUses = 1_000_000
    /// The longest validity, in days.
    package static let maxDays = 3650

    private let store: any InvitationStore
    private let reads: ReadGate
    private let time: any TimeSource

    init(store: any InvitationStore, reads: ReadGate, time: any TimeSource) {
        self.store = store
        self.reads = reads
        self.time = time
    }

    /// Creates an invitation.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 characters of printable ASCII without blanks.
    ///   - uses: the number of accounts for which the invitation is valid.
    ///   - days: the validity of the invitation, in days; 0 if it never expires.
    /// - Returns: the invitation, and its code, which cannot be shown again.
    /// - Throws: `.invalidArgument`, `.nameTaken`, `.storageUnavailable`.
    package func create(
        name: String,
        uses: Int,
        days: Int
    ) async throws(HermesError) -> (invitation: Invitation, code: String) {
        let isPlain = name.unicodeScalars.allSatisfy { (0x21...0x7E).contains($0.value) }
        guard (1...Self.maxNameCharacters).contains(name.utf8.count), isPlain else {
            throw HermesError(
                .ofValue(name.utf8.count, atMost: Self.maxNameCharacters),
                "The name of an invitation is 1 to \(Self.maxNameCharacters) characters of printable ASCII without blanks."
            )
        }
        guard (1...Self.maxUses).contains(uses) else {
            throw HermesError(.invalidArgument, "An invitation is valid for 1 to \(Self.maxUses) accounts.")
        }
        guard (0...Self.maxDays).contains(days) else {
            throw HermesError(.invalidArgument, "An invitation is valid for up to \(Self.maxDays) days; 0: forever.")
        }
        let code = InvitationCode()
        guard let hash = InvitationCode.hash(of: code.text) else {
            throw HermesError(.internalError, "The invitation could not be created.")
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

    /// Returns all invitations, including those that are used up or expired, the oldest first.
    package func invitations() async throws(HermesError) -> [Invitation] {
        try await reads.turn(of: .server) { () async throws(HermesError) in try await store.invitations() }
    }

    /// Revokes an invitation at once. Accounts that were created with it stay.
    /// - Throws: `.notFound`, `.storageUnavailable`.
    package func revoke(name: String) async throws(HermesError) { try await store.revoke(invitationNamed: name) }
}
