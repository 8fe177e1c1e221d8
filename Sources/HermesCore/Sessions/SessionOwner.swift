// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The owner of a session.
///
/// An account keeps its sessions when its name changes. A name without an account is a separate owner. Its sessions
/// belong neither to an account that gets the name later, nor to an account that had the name earlier.
public enum SessionOwner: Hashable, Sendable {
    /// The clients that log in without a name. Two such clients with the same client id use the same session.
    case anonymous
    case account(UserID)
    /// A name that was proved elsewhere: a token's subject or a certificate's name. No account had this name at the
    /// login. The name is in the form of ``NickName/key``.
    case subject(String)

    /// The form in which the owner is stored. It is empty for anonymous clients. For an account, it is "u" and the
    /// account's number. For a name without an account, it is "s" and the name.
    package var stored: String {
        switch self {
        case .anonymous: ""
        case .account(let user): "u\(user.rawValue)"
        case .subject(let name): "s" + name
        }
    }

    /// - Returns: nil if the text is not the stored form of an owner.
    package init?(stored text: String) {
        // The kind is the first byte. If a combining mark follows this byte, both form one `Character`, so the first
        // byte is removed instead of the first `Character`.
        let rest = String(Substring(text.utf8.dropFirst()))
        switch text.utf8.first {
        case nil:
            self = .anonymous
        case UInt8(ascii: "u"):
            guard let user = Int32(rest).flatMap(UserID.init(rawValue:)),
                Self.account(user).stored == text
            else { return nil }
            self = .account(user)
        case UInt8(ascii: "s"):
            self = .subject(rest)
        default:
            return nil
        }
    }
}
