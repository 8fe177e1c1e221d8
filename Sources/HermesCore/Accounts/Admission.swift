// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Somebody who proved to be an account and has no device, or none yet: its inbox stays closed until
/// ``AccountService/open(_:by:)``.
package struct Admission: Sendable {
    package var account: Account { standing.stored.account }
    /// The hash of the token that was shown; nil without one.
    package let tokenHash: TokenHash?
    /// The device that the token was given to.
    package var tokenOwner: DeviceID? { standing.owner?.device }
    let proof: DeviceProof
    let standing: LoginStanding
    /// When the login began, in the count of the ``SessionRegistry``'s ends.
    let stamp: UInt64

    /// Who the client acts as.
    package func principal(on device: DeviceID) -> Principal {
        Principal(user: account.id, nickName: account.nickName, device: device, loginStamp: stamp)
    }
}
