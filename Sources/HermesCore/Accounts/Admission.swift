// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a client is an account. It has no device yet: the inbox stays closed until
/// ``AccountService/open(_:by:)``.
package struct Admission: Sendable {
    package var account: Account { standing.stored.account }
    /// The hash of the token that was shown; nil without one.
    package let tokenHash: TokenHash?
    /// The device that owns the token; nil without a token.
    package let tokenOwner: DeviceID?
    let proof: DeviceProof
    let standing: LoginStanding
    /// When the login began, in the count of the ``DeviceRegistry``'s ends.
    let stamp: UInt64
    let login: LoginNumber

    init(
        tokenHash: TokenHash?,
        tokenOwner: DeviceID? = nil,
        proof: DeviceProof,
        standing: LoginStanding,
        stamp: UInt64,
        login: LoginNumber = .next()
    ) {
        self.tokenHash = tokenHash
        self.tokenOwner = tokenOwner
        self.proof = proof
        self.standing = standing
        self.stamp = stamp
        self.login = login
    }

    /// The principal for a device.
    ///
    /// - Parameter hasNewToken: whether the device got a token of its own and no longer depends on the shown one.
    package func principal(on device: DeviceID, hasNewToken: Bool = false) -> Principal {
        Principal(
            user: account.id,
            nickName: account.nickName,
            device: device,
            loginStamp: stamp,
            tokenOwner: hasNewToken ? nil : tokenOwner,
            login: login,
            isProven: proof > .claim
        )
    }
}
