// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The owner of a session.
///
/// An account keeps its sessions when its name changes. A name without an account is an owner of its own: its sessions
/// belong neither to an account that gets the name later, nor to one that had it before.
public enum SessionOwner: Hashable, Sendable {
    /// Nobody: clients without a name. They share their sessions by client id.
    case anonymous
    case account(UserID)
    /// A name that was proved elsewhere (the subject of a token, or a certificate's name) and that no account had at
    /// the login, as ``NickName/key``.
    case subject(String)

    /// As it is stored: "", "u" and the account's number, or "s" and the name.
    package var stored: String {
        switch self {
        case .anonymous: ""
        case .account(let user): "u\(user.rawValue)"
        case .subject(let name): "s" + name
        }
    }

    /// - Returns: nil if no owner is stored like this.
    package init?(stored text: String) {
        switch text.utf8.first {
        case nil:
            self = .anonymous
        case UInt8(ascii: "u"):
            guard let user = Int32(text.dropFirst()).flatMap(UserID.init(rawValue:)),
                Self.account(user).stored == text
            else { return nil }
            self = .account(user)
        case UInt8(ascii: "s"):
            self = .subject(String(text.dropFirst()))
        default:
            return nil
        }
    }
}
