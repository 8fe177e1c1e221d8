// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The identity that a connection acts as. Made by ``AccountService`` alone; every permission is checked against one.
package struct Principal: Sendable, Hashable {
    package let user: UserID
    package let nickName: NickName
    package let device: DeviceID
    /// When the login began, in the count of the ``SessionRegistry``'s ends; not part of the identity.
    let loginStamp: UInt64?
    /// The device whose token was shown, if it was one; not part of the identity.
    let tokenOwner: DeviceID?
    /// The login; nil for what acts without one. Not part of the identity.
    package let login: LoginNumber?

    package init(user: UserID, nickName: NickName, device: DeviceID) {
        self.init(user: user, nickName: nickName, device: device, loginStamp: nil, tokenOwner: nil, login: nil)
    }

    init(
        user: UserID,
        nickName: NickName,
        device: DeviceID,
        loginStamp: UInt64?,
        tokenOwner: DeviceID?,
        login: LoginNumber?
    ) {
        self.user = user
        self.nickName = nickName
        self.device = device
        self.loginStamp = loginStamp
        self.tokenOwner = tokenOwner
        self.login = login
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.user == right.user && left.device == right.device && left.nickName == right.nickName
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(user)
        hasher.combine(device)
    }
}
