// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The devices that have a push token, or had one.
struct TokenDevices {
    private struct Known {
        var devices: [DeviceID] = []
        /// The value of ``TokenDevices/additions`` after the last addition for the user.
        var lastAddition: UInt64 = 0
    }

    private var known: [UserID: Known] = [:]
    /// The users with more devices than an account may have. Some of these devices have no token any more.
    private var crowded: Set<UserID> = []
    /// The number of additions so far. An addition of a device that is already known counts, too.
    private(set) var additions: UInt64 = 0
    /// The devices that ``addStored(_:)`` has found and ``takeFound()`` has not returned yet.
    private var found: Set<DeviceKey> = []

    var isEmpty: Bool { known.isEmpty }

    subscript(user: UserID) -> [DeviceID] { known[user]?.devices ?? [] }

    /// Adds a device.
    ///
    /// - Returns: whether the device was not known.
    mutating func add(_ device: DeviceID, of user: UserID) -> Bool {
        additions += 1
        known[user, default: Known()].lastAddition = additions
        guard !self[user].contains(device) else { return false }
        known[user]?.devices.append(device)
        return true
    }

    /// Adds devices that were read from the store.
    mutating func addStored(_ owners: [TokenOwner]) {
        for owner in owners where add(owner.device, of: owner.user) {
            found.insert(DeviceKey(owner.user, owner.device))
        }
    }

    /// Returns the devices that were not known before ``addStored(_:)`` added them. Each of them is returned once.
    mutating func takeFound() -> Set<DeviceKey> {
        defer { found = [] }
        return found
    }

    /// Marks a user for ``takeCrowded(_:)`` if the user has more than `most` devices here.
    mutating func noteIfCrowded(_ user: UserID, most: Int) {
        if self[user].count > most { crowded.insert(user) }
    }

    /// Returns at most `limit` marked users, and removes their marks.
    mutating func takeCrowded(_ limit: Int) -> [UserID] {
        let taken = Array(crowded.prefix(limit))
        crowded.subtract(taken)
        return taken
    }

    /// Removes devices of a user.
    ///
    /// - Parameter mark: the value of ``additions`` before the caller found out which devices are gone. If a device of
    ///   the user was added after that, nothing is removed. If `mark` is nil, the devices are removed in any case.
    mutating func remove(of user: UserID, since mark: UInt64? = nil, where isGone: (DeviceID) -> Bool) {
        guard var own = known[user], mark.map({ own.lastAddition <= $0 }) ?? true else { return }
        for device in own.devices where isGone(device) { found.remove(DeviceKey(user, device)) }
        own.devices.removeAll(where: isGone)
        known[user] = own.devices.isEmpty ? nil : own
    }
}
