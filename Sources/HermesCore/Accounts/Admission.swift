// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a client is an account. It has no device yet: the inbox stays closed until
/// ``AccountService/open(_:by:)``.
package struct Admission: Sendable {
    package var account: Account { standing.stored.account }
    /// The hash of the token that was shown; nil without one.
    package let tokenHash: TokenHash?
    /// The device that owns the token.
    package var tokenOwner: DeviceID? { standing.owner?.device }
    let proof: DeviceProof
    let standing: LoginStanding
    /// When the login began, in the count of the ``SessionRegistry``'s ends.
    let stamp: UInt64

    /// The principal for a device.
    package func principal(on device: DeviceID) -> Principal {
        Principal(user: account.id, nickName: account.nickName, device: device, loginStamp: stamp)
    }
}
