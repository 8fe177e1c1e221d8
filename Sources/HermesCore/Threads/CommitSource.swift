// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The source of an operation. What the operation leaves behind counts against the limits of its source. The waiting
/// operations of one source do not delay those of another. A person with an account is one source, over every protocol
/// and under every name.
public enum CommitSource: Hashable, Sendable {
    /// The server itself, and clients that are not distinguished.
    case server
    case account(UserID)
    /// A name that was proved elsewhere and belongs to no account (``SessionOwner/subject(_:)``).
    case subject(String)
    /// The clients that have no name and share a network address. The value is ``NetworkAddress/key(of:)`` of the
    /// address; "": the address is unknown.
    case address(String)

    /// - Parameter host: an address without port; nil: unknown. All addresses of an IPv6 /64 network are one source.
    package init(host: String?) { self = .address(host.map(NetworkAddress.key(of:)) ?? "") }

    /// - Returns: nil for an anonymous owner: use its network address as the source.
    package init?(_ owner: SessionOwner) {
        switch owner {
        case .anonymous: return nil
        case .account(let user): self = .account(user)
        case .subject(let name): self = .subject(name)
        }
    }

    /// Reads the stored form. An unreadable form becomes ``server``, which counts only in the total.
    package init(stored text: String) {
        if text.utf8.first == UInt8(ascii: "h") {
            self = .address(String(Substring(text.utf8.dropFirst())))
        } else {
            self = SessionOwner(stored: text).flatMap { CommitSource($0) } ?? .server
        }
    }

    /// The stored form. For accounts and subjects, it is ``SessionOwner/stored``.
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

    /// The kind of the source, which determines its share of a limit. A subject counts as an account.
    package var kind: Kind {
        switch self {
        case .server: .server
        case .account, .subject: .account
        case .address: .address
        }
    }
}
