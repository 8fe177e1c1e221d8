// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores the push tokens of devices, and the last entry that was pushed to each device. After a restart, the entries
/// after both this entry and the device's cursor must still be pushed.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `PushTokenStoreConformance` of HermesTestKit.
package protocol PushTokenStore: Sendable {
    /// Stores the token of a device in place of its previous token; nil removes the token.
    ///
    /// A token belongs to only one device. If another device had the token, the other device loses it. Entries that are
    /// already in the inbox are not pushed. Storing the same token again changes only its time, its spelling and its
    /// app id. Two tokens are the same if both ``PushToken/service`` and ``PushToken/identity`` are equal.
    ///
    /// - Parameter shown: the proof that the login showed. A token is stored only while the proof is valid. The removal
    ///   of a token needs no proof.
    /// - Throws: `.notFound` if there is no such device, `.wrongCredentials` or `.invalidToken` if the proof is no
    ///   longer valid, `.storageUnavailable`.
    func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        shown: ShownProof,
        now: Timestamp
    ) async throws(HermesError)

    /// Returns those devices of a user that have a token. Returns no devices while the account is disabled.
    func pushTargets(of user: UserID) async throws(HermesError) -> [PushTarget]

    /// Records pushed entries and deletes tokens, in one commit. Ignores devices that are gone.
    func settlePushes(_ settlements: [PushSettlement]) async throws(HermesError)

    /// Returns devices that have a token, ordered by user and device id. If `owner` is not nil, only devices after
    /// `owner` are returned.
    func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) async throws(HermesError) -> [TokenOwner]

    /// Returns those devices of a user that have a token, even while the account is disabled.
    func devicesWithPushTokens(of user: UserID) async throws(HermesError) -> Set<DeviceID>

    /// Returns users with an id above `user`, in ascending order of their ids. Each of them has a device with a token,
    /// and an entry after both the device's cursor and the device's ``PushTarget/pushedUpTo``. A page may have fewer
    /// than `limit` users although more users follow. A page is empty only after the last user.
    func usersToPush(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID]
}

/// A device that can get push notifications.
package struct PushTarget: Sendable, Hashable {
    package let device: DeviceID
    package let token: PushToken
    package let setAt: Timestamp
    /// The last entry that the device has acknowledged.
    package let cursor: UInt64
    /// The last entry that was pushed, or that was in the inbox before the token was set.
    package let pushedUpTo: UInt64

    package init(device: DeviceID, token: PushToken, setAt: Timestamp, cursor: UInt64, pushedUpTo: UInt64) {
        self.device = device
        self.token = token
        self.setAt = setAt
        self.cursor = cursor
        self.pushedUpTo = pushedUpTo
    }
}

/// The result of a push, which is to be recorded.
package enum PushSettlement: Sendable, Hashable {
    /// Moves ``PushTarget/pushedUpTo`` forward.
    case pushed(UserID, DeviceID, PushToken, upTo: UInt64)
    /// Deletes a token. Has no effect if the device has another token by now, or has registered this token again after
    /// `since`.
    case gone(UserID, DeviceID, PushToken, since: Timestamp?)
}
