// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof of identity that a client logs in with.
public enum Credential: Hashable, Sendable {
    /// Creates an account. The name has 1 to 64 characters and is unique without regard to case; the password has 6 to
    /// 256 bytes. `invitation` is required if the server asks for one (``HermesClientError/Code/invitationRequired``).
    case register(nickName: String, password: String, invitation: String = "")
    /// A name and its password.
    case password(nickName: String, password: String)
    /// A token from an earlier login.
    case token(String)
}
