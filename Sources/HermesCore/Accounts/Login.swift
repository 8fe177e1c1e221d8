// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a client proves who it is with.
package enum Credential: Sendable, CustomStringConvertible {
    case password(nickName: String, password: String)
    case token(String)

    /// Without the secret, so that none gets into a log.
    package var description: String {
        switch self {
        case .password(let nickName, _): "password of \(nickName)"
        case .token: "token"
        }
    }
}

/// A successful login.
package struct Login: Sendable {
    package let principal: Principal
    /// A new token for the next login, in the clear; nil if the login itself was by token.
    package let token: String?
    /// The hash of the token this session stands on, for ``AccountService/logOut(_:token:removeDevice:)``.
    package let tokenHash: TokenHash?
    package let device: Device
    package let position: InboxPosition
}
