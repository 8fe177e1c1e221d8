// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a client is an account. The client's device is not open yet: the inbox stays closed until
/// ``AccountService/open(_:by:)``.
package struct Admission: Sendable {
    package var account: Account { standing.stored.account }
    /// The hash of the token that was shown; nil if no token was shown.
    package let tokenHash: TokenHash?
    /// The device that owns the token; nil without a token.
    package let tokenOwner: DeviceID?
    let proof: DeviceProof
    let standing: LoginStanding
    /// How many times the server had forced a connection to end when the login began, as counted by
    /// ``DeviceRegistry/stamp()``.
    let stamp: UInt64
    let login: LoginNumber
    let shown: ShownProof

    init(
        tokenHash: TokenHash?,
        tokenOwner: DeviceID? = nil,
        proof: DeviceProof,
        standing: LoginStanding,
        stamp: UInt64,
        login: LoginNumber = .next(),
        shown: ShownProof? = nil
    ) {
        self.tokenHash = tokenHash
        self.tokenOwner = tokenOwner
        self.proof = proof
        self.standing = standing
        self.stamp = stamp
        self.login = login
        self.shown =
            shown ?? tokenHash.map { .token($0) } ?? (proof == .account ? .password(standing.stored.password) : .other)
    }

    /// Returns the principal for a device.
    ///
    /// - Parameter token: the device's own new token, if it got one. The principal then depends on this token, not on
    ///   the proof that was shown.
    package func principal(on device: DeviceID, newToken token: TokenHash? = nil) -> Principal {
        Principal(
            user: account.id,
            nickName: account.nickName,
            device: device,
            loginStamp: stamp,
            tokenOwner: token == nil ? tokenOwner : nil,
            login: login,
            isProven: proof > .claim,
            shown: token.map { .token($0) } ?? shown
        )
    }
}
