// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Somebody who may log in to the console. Administrators are not accounts: they do not send or receive messages.
package struct Administrator: Sendable, Hashable {
    package let name: AdministratorName
    package var role: AdministratorRole
    package var password: PasswordHash
    /// The second factor; nil if the password alone is enough.
    package var secondFactor: SecondFactor?
    /// The last time step whose code was used.
    package var usedStep: Int64
    package let createdAt: Timestamp
    package var lastLoginAt: Timestamp?

    package init(
        name: AdministratorName,
        role: AdministratorRole,
        password: PasswordHash,
        secondFactor: SecondFactor? = nil,
        usedStep: Int64 = 0,
        createdAt: Timestamp,
        lastLoginAt: Timestamp? = nil
    ) {
        self.name = name
        self.role = role
        self.password = password
        self.secondFactor = secondFactor
        self.usedStep = usedStep
        self.createdAt = createdAt
        self.lastLoginAt = lastLoginAt
    }
}

/// An administrator's name: 1 to 64 ASCII letters, digits, `.`, `_`, `-` and `@`; case does not matter.
package struct AdministratorName: Sendable, Hashable, Comparable, CustomStringConvertible {
    package static let maxBytes = 64

    /// The name in lower case.
    package let rawValue: String

    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package init(_ text: String) throws(HermesError) {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: ".-_@".utf8.contains(byte)
            }
        }
        guard (1...Self.maxBytes).contains(text.utf8.count), isPlain else {
            throw HermesError(
                .ofValue(text.utf8.count, atMost: Self.maxBytes),
                "The name of an administrator is 1 to \(Self.maxBytes) letters, digits, '.', '_', '-' or '@'."
            )
        }
        rawValue = text.lowercased()
    }

    package var description: String { rawValue }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The rights of an administrator; each role includes the rights of the roles before it.
package enum AdministratorRole: String, Sendable, CaseIterable, Comparable {
    /// Sees the metrics and the state, and changes nothing.
    case viewer
    /// Also acts on rooms, topics, devices and sessions.
    case `operator`
    /// Also creates and deletes accounts, keys and invitations.
    case administrator

    private var rank: Int {
        switch self {
        case .viewer: 0
        case .operator: 1
        case .administrator: 2
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// A shared secret for one-time codes, and recovery codes in case the device is lost.
package struct SecondFactor: Sendable, Hashable {
    package let secret: [UInt8]
    /// The hashes of the recovery codes that have not been used yet.
    package var recovery: [TokenHash]

    package init(secret: [UInt8], recovery: [TokenHash]) {
        self.secret = secret
        self.recovery = recovery
    }
}

/// A code that can be used only once.
package enum OneTimeCode: Sendable, Hashable {
    /// The code of this time step (``TimeCode``).
    case step(Int64)
    case recovery(TokenHash)
}

/// A change of an administrator.
package enum AdministratorChange: Sendable, Hashable {
    case password(PasswordHash)
    /// A new hash of the same password. The new hash is ignored if the stored hash no longer equals `of`.
    case renewedPassword(PasswordHash, of: PasswordHash)
    case role(AdministratorRole)
    case secondFactor(SecondFactor?)
    case loggedIn(Timestamp)
}
