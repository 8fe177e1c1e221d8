// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto

/// An invitation to register, without its code.
package struct Invitation: Sendable, Hashable {
    package let id: Int64
    /// The name for people. It is unique.
    package let name: String
    /// The number of accounts that may be created with the invitation.
    package let uses: Int
    /// The number of accounts that were created with the invitation.
    package let used: Int
    package let createdAt: Timestamp
    /// The time at which the invitation expires; nil if it never expires.
    package let expiresAt: Timestamp?

    package init(id: Int64, name: String, uses: Int, used: Int = 0, createdAt: Timestamp, expiresAt: Timestamp?) {
        self.id = id
        self.name = name
        self.uses = uses
        self.used = used
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    package func isValid(at now: Timestamp) -> Bool { used < uses && expiresAt.map { now < $0 } ?? true }
}

/// An invitation to be stored.
package struct NewInvitation: Sendable, Hashable {
    package let name: String
    /// The hash of the code. The code itself is not stored.
    package let hash: TokenHash
    package let uses: Int
    package let expiresAt: Timestamp?

    package init(name: String, hash: TokenHash, uses: Int, expiresAt: Timestamp?) {
        self.name = name
        self.hash = hash
        self.uses = uses
        self.expiresAt = expiresAt
    }
}

/// The code of an invitation: 100 random bits as 20 easily distinguished characters (Crockford's base 32), in groups of
/// five. Case, hyphens and blanks are ignored. O is read as 0; I and L are read as 1.
package struct InvitationCode: Sendable {
    package let text: String

    private static let letters = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    private static let count = 20
    /// The longest text that is examined, in bytes.
    private static let maxBytes = 64

    /// Creates a code from the system's secure random numbers.
    package init() {
        let characters = randomBytes(Self.count).map { Self.letters[Int($0 & 31)] }
        text = stride(from: 0, to: Self.count, by: 5).map { String(characters[$0..<$0 + 5]) }.joined(separator: "-")
    }

    /// Returns the hash of a typed code; nil if the text cannot be a code.
    package static func hash(of text: String) -> TokenHash? {
        guard text.utf8.count <= maxBytes else { return nil }
        var characters: [Character] = []
        for character in text.uppercased() where character != "-" && character != " " {
            switch character {
            case "O": characters.append("0")
            case "I", "L": characters.append("1")
            default: characters.append(character)
            }
        }
        guard characters.count == count, characters.allSatisfy(letters.contains) else { return nil }
        return TokenHash(bytes: Array(SHA256.hash(data: Array("hermes invitation \(String(characters))".utf8))))
    }
}
