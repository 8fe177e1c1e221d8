// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The source of an operation. Everything that the operation leaves in the server counts against the limits of its
/// source. The waiting operations of one source do not delay the operations of another source. An account is one
/// source, regardless of the protocols and names that its clients use.
public enum CommitSource: Hashable, Sendable {
    /// The server itself, and clients that are not distinguished.
    case server
    case account(UserID)
    /// A name that another system has proved, and that belongs to no account (``SessionOwner/subject(_:)``).
    case subject(String)
    /// The clients that have no name and share a network address. The value is ``NetworkAddress/key(of:)`` of the
    /// address. The value is empty if the address is unknown.
    case address(String)

    /// - Parameter host: an address without a port; nil if it is unknown. All addresses of an IPv6 /64 network are one
    ///   source.
    package init(host: String?) { self = .address(host.map(NetworkAddress.key(of:)) ?? "") }

    /// - Returns: nil for an anonymous owner. The owner's network address is then the source.
    package init?(_ owner: SessionOwner) {
        switch owner {
        case .anonymous: return nil
        case .account(let user): self = .account(user)
        case .subject(let name): self = .subject(name)
        }
    }

    /// Reads the stored form. An unreadable form becomes ``server``, which counts only towards the limits of all
    /// sources together.
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
