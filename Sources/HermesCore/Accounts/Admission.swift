// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a client belongs to an account. The client's device is not open yet: the inbox stays closed until
/// ``AccountService/open(_:by:isLate:)`` is called.
package struct Admission: Sendable {
    package var account: Account { standing.stored.account }
    /// The hash of the token that was shown; nil if no token was shown.
    package let tokenHash: TokenHash?
    /// The device that owns the token; nil if no token was shown.
    package let tokenOwner: DeviceID?
    let proof: DeviceProof
    private(set) var standing: LoginStanding
    /// The value of ``DeviceRegistry/stamp()`` when the login began.
    private(set) var stamp: UInt64
    let login: LoginNumber
    /// The state that the principals of the login share.
    private let current: Principal.Current
    /// The last proof that the client showed, at its login or later.
    var shown: ShownProof { current.shown }

    init(
        tokenHash: TokenHash?,
        tokenOwner: DeviceID? = nil,
        proof: DeviceProof,
        standing: LoginStanding,
        stamp: UInt64
    ) {
        self.tokenHash = tokenHash
        self.tokenOwner = tokenOwner
        self.proof = proof
        self.standing = standing
        self.stamp = stamp
        login = .next()
        let shown: ShownProof =
            tokenHash.map { ShownProof.token($0) } ?? (proof == .account ? .password(standing.stored.password) : .other)
        current = Principal.Current(standing.stored.account.nickName, shown)
    }

    /// Returns the same admission with the account's present state in the store. The principals of the result have the
    /// account's present name.
    ///
    /// - Parameter stamp: the value of ``DeviceRegistry/stamp()`` before the store was read.
    func renewed(with standing: LoginStanding, stamp: UInt64) -> Admission {
        var renewed = self
        renewed.standing = standing
        renewed.stamp = stamp
        current.rename(to: standing.stored.account.nickName)
        return renewed
    }

    /// Returns the principal for a device. The principals without a new token share their name and their proof.
    ///
    /// - Parameter token: the device's own new token; nil if the device got no new token. With a new token, the
    ///   principal depends on this token, not on the proof that was shown.
    package func principal(on device: DeviceID, newToken token: TokenHash? = nil) -> Principal {
        Principal(
            user: account.id,
            device: device,
            current: token.map { Principal.Current(account.nickName, .token($0)) } ?? current,
            loginStamp: stamp,
            tokenOwner: token == nil ? tokenOwner : nil,
            login: login,
            isProven: proof > .claim
        )
    }
}
