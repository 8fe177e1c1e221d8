// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A client's proof of identity.
package enum Credential: Sendable, CustomStringConvertible {
    case password(nickName: String, password: String)
    case token(String)
    /// A token of any device of the account. It admits any device, not only the device to which it was issued. This is
    /// for protocols that have no login by password and no tokens of their own (QSIOP, LiveRoom).
    case tokenOfAnyDevice(String)
    /// A password, or a token of any device of the account. A token admits any device, not only the device to which it
    /// was issued. This is for protocols that have the same field for passwords and tokens, and that cannot return a
    /// token (MQTT).
    case passwordOrToken(nickName: String, secret: String)
    /// A claim to be this account, without proof. This is for QSIOP, if the configuration allows it.
    case claim(UserID)
    /// A trusted third party's statement that the client is this account: a JSON Web Token or a certificate.
    case vouched(UserID)

    /// A description without the secret, safe for logs.
    package var description: String {
        switch self {
        case .password(let nickName, _): "password of \(nickName)"
        case .passwordOrToken(let nickName, _): "password or token of \(nickName)"
        case .token, .tokenOfAnyDevice: "token"
        case .claim(let user): "claim to be \(user)"
        case .vouched(let user): "third party's statement for \(user)"
        }
    }
}

/// A successful login.
package struct Login: Sendable {
    package private(set) var principal: Principal
    /// A new token for the next login, in the clear. There is one after a registration or after a login with
    /// ``Credential/password(nickName:password:)``; otherwise, this is nil.
    package let token: String?
    /// The hash of the login's token, for ``AccountService/logOut(_:token:removeDevice:)``.
    package let tokenHash: TokenHash?
    package let device: Device
    package let position: InboxPosition

    func continued(at stamp: UInt64) -> Login {
        var continued = self
        continued.principal = principal.continued(at: stamp)
        return continued
    }
}
