// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a client proves who it is with.
package enum Credential: Sendable, CustomStringConvertible {
    case password(nickName: String, password: String)
    case token(String)
    /// A token of any of the account's devices, which lets this device in as itself: for protocols that have neither a
    /// login by password nor tokens of their own (QSIOP, LiveRoom).
    case tokenOfAnyDevice(String)
    /// A password, or in its place a token of any of the account's devices, which lets this device in as itself: for
    /// protocols with one field for both and no way to hand out a token (MQTT).
    case passwordOrToken(nickName: String, secret: String)
    /// Nothing but the claim to be this account: for QSIOP where the configuration believes it.
    case claim(UserID)
    /// Somebody whom the server believes said that it is this account: a JSON Web Token, a certificate.
    case vouched(UserID)

    /// Without the secret, so that none gets into a log.
    package var description: String {
        switch self {
        case .password(let nickName, _): "password of \(nickName)"
        case .passwordOrToken(let nickName, _): "password or token of \(nickName)"
        case .token, .tokenOfAnyDevice: "token"
        case .claim(let user): "claim to be \(user)"
        case .vouched(let user): "word of others for \(user)"
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
