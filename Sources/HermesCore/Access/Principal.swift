// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The account and device as which a connection acts. Every permission is checked against a principal.
/// ``AccountService`` creates the principal of a login. The HTTP API creates a principal for each account in whose name
/// a back end sends messages.
package struct Principal: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID
    /// The name and the proof. All copies of the principal share them, so that a connection has a new name at once.
    private let current: Current
    /// How many times the server had forced a connection to end when the login began, as counted by
    /// ``DeviceRegistry/stamp()``. Not part of the identity.
    let loginStamp: UInt64?
    /// The device whose token was shown; nil if no token was shown. Not part of the identity.
    let tokenOwner: DeviceID?
    /// The login; nil for a principal that acts without one. Not part of the identity.
    package let login: LoginNumber?
    /// Whether the login proved that the client is the account. False for a mere claim: the client's address is then
    /// charged instead of the account. Not part of the identity.
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

    /// The last proof that the connection showed, at its login or later. Not part of the identity.
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
