// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The account and device that a connection represents. Every permission is checked against a principal.
/// ``AccountService`` creates the principal of a login. The HTTP API creates a principal for each account in whose name
/// a back end sends messages.
package struct Principal: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID
    /// The name and the proof. All copies of the principal share them, so that a new name reaches a connection at once.
    /// The principals of one ``Admission`` also share them, so a proof of one principal counts for all of them.
    private let current: Current
    /// The value of ``DeviceRegistry/stamp()`` when the login began. The stamp counts the connections that the server
    /// has forced to end. The stamp is not part of the identity.
    private(set) var loginStamp: UInt64?
    /// The device whose token was shown; nil if no token was shown. This device is not part of the identity.
    let tokenOwner: DeviceID?
    /// The login; nil for a principal that acts without a login. The login is not part of the identity.
    package let login: LoginNumber?
    /// Whether the login proved that the client belongs to the account. The value is false if the client only claimed
    /// to belong to the account. The client's address is then charged instead of the account. The value is not part of
    /// the identity.
    package let isProven: Bool

    package init(user: UserID, nickName: NickName, device: DeviceID) {
        let current = Current(nickName, .other)
        self.init(user: user, device: device, current: current, loginStamp: nil, tokenOwner: nil, login: nil)
    }

    init(
        user: UserID,
        device: DeviceID,
        current: Current,
        loginStamp: UInt64?,
        tokenOwner: DeviceID?,
        login: LoginNumber?,
        isProven: Bool = true
    ) {
        self.user = user
        self.device = device
        self.current = current
        self.loginStamp = loginStamp
        self.tokenOwner = tokenOwner
        self.login = login
        self.isProven = isProven
    }

    /// The account's name; it changes when the account is renamed (``DeviceRegistry/rename(_:to:)``).
    package var nickName: NickName { current.name }

    /// Gives the principal and all its copies the account's new name.
    package func rename(to new: NickName) { current.rename(to: new) }

    /// The last proof that the connection showed, at its login or later. This proof is not part of the identity.
    package var shown: ShownProof { current.shown }

    func prove(by proof: ShownProof) { current.prove(by: proof) }

    /// Returns the same principal with another ``loginStamp``. Both principals share their name and their proof.
    func continued(at stamp: UInt64) -> Principal {
        var continued = self
        continued.loginStamp = stamp
        return continued
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.user == right.user && left.device == right.device && left.nickName == right.nickName
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(user)
        hasher.combine(device)
    }
}

extension Principal {
    /// The part of a principal that changes while its device is connected.
    ///
    /// State: a `Mutex`; nothing is called while it is locked.
    final class Current: Sendable {
        private let value: Mutex<(name: NickName, shown: ShownProof)>

        init(_ name: NickName, _ shown: ShownProof) { value = Mutex((name, shown)) }

        var name: NickName { value.withLock(\.name) }

        var shown: ShownProof { value.withLock(\.shown) }

        func rename(to new: NickName) { value.withLock { $0.name = new } }

        func prove(by proof: ShownProof) { value.withLock { $0.shown = proof } }
    }
}
