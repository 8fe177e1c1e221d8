// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The identity that a connection acts as. Made by ``AccountService`` alone; every permission is checked against one.
package struct Principal: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID
    /// Shared by all copies, so that a connection has the new name at once.
    private let current: Current
    /// When the login began, as the number of ends that the ``DeviceRegistry`` had counted
    /// (``DeviceRegistry/stamp()``); not part of the identity.
    let loginStamp: UInt64?
    /// The device whose token was shown; nil if no token was shown. Not part of the identity.
    let tokenOwner: DeviceID?
    /// The login; nil for a principal that acts without one. Not part of the identity.
    package let login: LoginNumber?
    /// Whether the login proved that it is the account's; false for a mere claim, for which the account does not pay.
    /// Not part of the identity.
    package let isProven: Bool

    package init(user: UserID, nickName: NickName, device: DeviceID) {
        self.init(user: user, nickName: nickName, device: device, loginStamp: nil, tokenOwner: nil, login: nil)
    }

    init(
        user: UserID,
        nickName: NickName,
        device: DeviceID,
        loginStamp: UInt64?,
        tokenOwner: DeviceID?,
        login: LoginNumber?,
        isProven: Bool = true,
        shown: ShownProof = .other
    ) {
        self.user = user
        current = Current(nickName, shown)
        self.device = device
        self.loginStamp = loginStamp
        self.tokenOwner = tokenOwner
        self.login = login
        self.isProven = isProven
    }

    /// The account's name; it changes when the account is renamed (``DeviceRegistry/rename(_:to:)``).
    package var nickName: NickName { current.value.withLock(\.name) }

    func rename(to new: NickName) { current.value.withLock { $0.name = new } }

    /// The proof that the login showed, at first or since; not part of the identity.
    package var shown: ShownProof { current.value.withLock(\.shown) }

    func prove(by proof: ShownProof) { current.value.withLock { $0.shown = proof } }

    package static func == (left: Self, right: Self) -> Bool {
        left.user == right.user && left.device == right.device && left.nickName == right.nickName
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(user)
        hasher.combine(device)
    }
}

/// The part of a principal that changes while its device is connected.
///
/// State: a `Mutex`; nothing is called under it.
private final class Current: Sendable {
    let value: Mutex<(name: NickName, shown: ShownProof)>

    init(_ name: NickName, _ shown: ShownProof) { value = Mutex((name, shown)) }
}
