// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How a client proves who it is.
public enum Credential: Hashable, Sendable {
    /// Creates an account: a name of 1 to 64 characters, unique without regard to case, and a password of 6 to 256 bytes;
    /// and the code of an invitation where the server asks for one (``HermesClientError/Code/invitationRequired``).
    case register(nickName: String, password: String, invitation: String = "")
    /// A name and its password.
    case password(nickName: String, password: String)
    /// A token that an earlier login gave.
    case token(String)
}
