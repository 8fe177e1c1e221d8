// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores where devices can be pushed to, and how far each has been. Together with the devices' cursors that is all that
/// has to be known after a restart: what is behind both is still to be pushed.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `PushTokenStoreConformance` of HermesTestKit.
package protocol PushTokenStore: Sendable {
    /// Stores the token of a device in the place of its last one, or (nil) takes it away.
    ///
    /// A token is of one device: whoever had it before loses it. Nothing that is in the inbox by now is pushed to it. The
    /// same token again changes nothing but the time.
    /// - Throws: `.notFound` if there is no such device, `.storageUnavailable`.
    func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        now: Timestamp
    ) async throws(HermesError)

    /// The devices of a user that have a token; none while the account is disabled.
    func pushTargets(of user: UserID) async throws(HermesError) -> [PushTarget]

    /// Notes what was pushed and forgets tokens, in one commit. What is of no device any more is left out.
    func settlePushes(_ settlements: [PushSettlement]) async throws(HermesError)

    /// Devices with a token, in the order of user and device id, behind `owner`.
    func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) async throws(HermesError) -> [TokenOwner]

    /// Users with an id above `user`, ascending, for whom something waits that is behind both
    /// the cursor and ``PushTarget/pushedUpTo`` of a device with a token.
    func usersToPush(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID]
}

/// A device that can be pushed to.
package struct PushTarget: Sendable, Hashable {
    package let device: DeviceID
    package let token: PushToken
    package let setAt: Timestamp
    /// The device has taken its inbox up to here.
    package let cursor: UInt64
    /// What is up to here was pushed, or was there before the token.
    package let pushedUpTo: UInt64

    package init(device: DeviceID, token: PushToken, setAt: Timestamp, cursor: UInt64, pushedUpTo: UInt64) {
        self.device = device
        self.token = token
        self.setAt = setAt
        self.cursor = cursor
        self.pushedUpTo = pushedUpTo
    }
}

/// What is noted after a push.
package enum PushSettlement: Sendable, Hashable {
    /// Moves ``PushTarget/pushedUpTo`` forward.
    case pushed(UserID, DeviceID, upTo: UInt64)
    /// Forgets a token, unless the device has another by now, or gave it again after `since`.
    case gone(UserID, DeviceID, PushToken, since: Timestamp?)
}
