// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The source of an operation, which pays for what the operation leaves behind. The waiting operations of one source do
/// not delay another's. A person with an account is one source, over every protocol and under every name.
public enum CommitSource: Hashable, Sendable {
    /// The server itself, and clients that are not distinguished.
    case server
    case account(UserID)
    /// A name that was proved elsewhere and is no account's (``SessionOwner/subject(_:)``).
    case subject(String)
    /// Clients without a name, by ``NetworkAddress/key(of:)``; "": unknown.
    case address(String)

    /// - Parameter host: an address without port; nil: unknown. An IPv6 network of 64 bits counts as one.
    package init(host: String?) { self = .address(host.map(NetworkAddress.key(of:)) ?? "") }

    /// - Returns: nil for an anonymous owner: its address pays.
    package init?(_ owner: SessionOwner) {
        switch owner {
        case .anonymous: return nil
        case .account(let user): self = .account(user)
        case .subject(let name): self = .subject(name)
        }
    }

    /// Reads the stored form. An unreadable one counts in the total alone, like the server's own.
    package init(stored text: String) {
        if text.utf8.first == UInt8(ascii: "h") {
            self = .address(String(text.dropFirst()))
        } else {
            self = SessionOwner(stored: text).flatMap { CommitSource($0) } ?? .server
        }
    }

    /// As it is stored with what it pays for; for accounts and subjects as ``SessionOwner/stored``.
    package var stored: String {
        switch self {
        case .server: ""
        case .account(let user): SessionOwner.account(user).stored
        case .subject(let name): SessionOwner.subject(name).stored
        case .address(let key): "h" + key
        }
    }

    package enum Kind: Sendable {
        case server
        case account
        case address
    }

    /// Its kind for shares: a subject counts as an account.
    package var kind: Kind {
        switch self {
        case .server: .server
        case .account, .subject: .account
        case .address: .address
        }
    }
}
