// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Stores the push tokens of devices. Keeps in memory which devices have a token, so that the store need not be read to
/// find out.
///
/// State: a `Mutex` around the devices with tokens, one around the allowances, and one around the hosts that are
/// allowed. The first may contain devices whose tokens are gone; the store is authoritative.
package final class PushTokenService: Sendable {
    /// The rule for the hosts to which Web Push is sent.
    private struct Hosts {
        var allows: @Sendable (WebPushSubscription) -> Bool = { _ in true }
    }

    let store: any PushTokenStore
    private let time: any TimeSource
    private let roster: ClusterRoster?
    /// The hook for devices that have a new token. Entries may wait for such a device: they were pushed to an earlier
    /// token, or another node committed them before that node heard of the token.
    let overlooked = Hook<[DeviceKey]>()
    private let devices = Mutex<[UserID: [DeviceID]]>([:])
    /// The turns in which ``devices`` is changed, so that the changes have the order of the commits.
    private let turns = TaskTurns<UserID>()
    private let changes = Mutex(AccountAllowance.changes)
    private let hosts = Mutex(Hosts())

    package convenience init(store: any PushTokenStore, time: any TimeSource) {
        self.init(store: store, time: time, roster: nil)
    }

    /// - Parameter roster: the other nodes; nil: there are none.
    init(store: any PushTokenStore, time: any TimeSource, roster: ClusterRoster?) {
        self.store = store
        self.time = time
        self.roster = roster
    }

    /// Lets `allows` decide about new Web Push subscriptions from now on.
    package func limitWebPush(to allows: @escaping @Sendable (WebPushSubscription) -> Bool) {
        hosts.withLock { $0.allows = allows }
    }

    /// Stores the token of a device; nil removes it.
    ///
    /// - Throws: `.invalidArgument` for a host that is not allowed, `.notFound`, `.rateLimited`, `.wrongCredentials` or
    ///   `.invalidToken` if the login was revoked meanwhile, `.storageUnavailable`.
    package func set(_ token: PushToken?, of principal: Principal) async throws(HermesError) {
        try changes.withLock { changes throws(HermesError) in
            try changes.takeChange(of: principal.user, now: time.uptime())
        }
        if let token, token.service == .webPush {
            let subscription = try WebPushSubscription(parsing: token.text)
            guard hosts.withLock({ $0 }).allows(subscription) else {
                throw HermesError(.invalidArgument, "the server sends no Web Push to the endpoint's host and port")
            }
        }
        await turns.begin(principal.user)
        defer { turns.pass(principal.user) }
        try await store.setPushToken(
            token,
            of: principal.device,
            principal.user,
            shown: principal.shown,
            now: time.now()
        )
        devices.withLock { devices in
            var own = devices[principal.user] ?? []
            own.removeAll { $0 == principal.device }
            if token != nil { own.append(principal.device) }
            devices[principal.user] = own.isEmpty ? nil : own
        }
        guard token != nil else { return }
        let key = DeviceKey(principal.user, principal.device)
        roster?.tellToken(of: key)
        overlooked([key])
    }

    /// Records that a device on another node has a token. The removal of a token shows only when the store is read.
    ///
    /// - Returns: whether the device was not known to have one.
    func heard(of key: DeviceKey) -> Bool { devices.withLock { Self.add(key.device, of: key.user, to: &$0) } }

    private static func add(_ device: DeviceID, of user: UserID, to devices: inout [UserID: [DeviceID]]) -> Bool {
        if devices[user]?.contains(device) == true { return false }
        devices[user, default: []].append(device)
        return true
    }

    /// Forgets a deleted account.
    func forget(_ user: UserID) { devices.withLock { $0[user] = nil } }

    /// Reads which devices have tokens.
    ///
    /// - Returns: the devices that were not known to have one.
    @discardableResult
    package func load() async throws(HermesError) -> [DeviceKey] {
        var new: [DeviceKey] = []
        var last: TokenOwner?
        while true {
            let page = try await store.devicesWithPushTokens(after: last, limit: StoreSettings.maxPageEntries)
            guard let end = page.last else { return new }
            last = end
            devices.withLock { devices in
                for owner in page where Self.add(owner.device, of: owner.user, to: &devices) {
                    new.append(DeviceKey(owner.user, owner.device))
                }
            }
        }
    }

    /// Returns the devices of these users that have tokens; users without such devices are left out.
    func devices(of users: some Sequence<UserID>) -> [UserID: [DeviceID]] {
        devices.withLock { devices in
            var found: [UserID: [DeviceID]] = [:]
            guard !devices.isEmpty else { return found }
            for user in users { found[user] = devices[user] }
            return found
        }
    }
}
