// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Stores the push tokens of devices. Keeps in memory which devices have a token, so that the store need not be read
/// for this.
///
/// State: a `Mutex` around the devices with tokens, one around the allowances, and one around the rule for hosts. The
/// devices in memory may include devices whose tokens are gone; the store is authoritative. Such devices are forgotten
/// when a login is revoked on this node, when a check finds that the device has no token, and when an account seems to
/// have too many devices. So memory holds at most as many devices of an account as the account may have, and for a
/// moment a few more.
package final class PushTokenService: Sendable {
    /// The rule for the hosts to which Web Push is sent.
    private struct Hosts {
        var allows: @Sendable (WebPushSubscription) -> Bool = { _ in true }
    }

    let store: any PushTokenStore
    private let time: any TimeSource
    private let roster: ClusterRoster?
    /// The hook for devices that have a new token. Entries may wait for such a device, because they were pushed to an
    /// earlier token, or because another node committed them before that node heard of the token.
    let overlooked = Hook<[DeviceKey]>()
    private let maxDevices: Int
    private let devices = Mutex(TokenDevices())
    /// The turns in which ``devices`` is changed, so that the changes have the order of the commits.
    private let turns = TaskTurns<UserID>()
    private let changes = Mutex(AccountAllowance.changes)
    private let hosts = Mutex(Hosts())

    package convenience init(store: any PushTokenStore, time: any TimeSource) {
        self.init(store: store, time: time, roster: nil, maxDevices: AccountSettings().maxDevices)
    }

    /// - Parameters:
    ///   - roster: the other nodes; nil if there are none.
    ///   - maxDevices: the largest number of devices that an account may have. If an account seems to have more devices
    ///     with tokens, the store is read.
    init(store: any PushTokenStore, time: any TimeSource, roster: ClusterRoster?, maxDevices: Int) {
        self.store = store
        self.time = time
        self.roster = roster
        self.maxDevices = maxDevices
    }

    /// Lets `allows` decide about new Web Push subscriptions from now on.
    package func limitWebPush(to allows: @escaping @Sendable (WebPushSubscription) -> Bool) {
        hosts.withLock { $0.allows = allows }
    }

    /// Stores the token of a device; nil removes the token.
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
        let count = devices.withLock { devices in
            if token == nil {
                devices.remove(of: principal.user) { $0 == principal.device }
            } else {
                _ = devices.add(principal.device, of: principal.user)
            }
            return devices[principal.user].count
        }
        guard token != nil else { return }
        // If the store fails, the account's next token causes another try.
        if count > maxDevices { try? await forgetGone(of: principal.user) }
        let key = DeviceKey(principal.user, principal.device)
        roster?.tellToken(of: key)
        overlooked([key])
    }

    /// Records that a device on another node has a token. The removal of a token becomes known only when the store is
    /// read. If the account now seems to have too many devices, ``forgetSurplus()`` reads the store.
    ///
    /// - Returns: whether the device was not known to have a token.
    func heard(of key: DeviceKey) -> Bool {
        devices.withLock { devices in
            let isNew = devices.add(key.device, of: key.user)
            devices.noteIfCrowded(key.user, most: maxDevices)
            return isNew
        }
    }

    /// Forgets devices that have no token, for accounts that seem to have too many devices. This is called about once a
    /// second.
    func forgetSurplus() async {
        for user in devices.withLock({ $0.takeCrowded(Self.readsPerRound) }) {
            do throws(HermesError) {
                try await forgetGone(of: user)
            } catch {
                devices.withLock { $0.noteIfCrowded(user, most: maxDevices) }
            }
        }
    }

    /// The largest number of accounts whose devices one call to ``forgetSurplus()`` reads.
    private static let readsPerRound = 64

    /// Forgets a deleted account.
    func forget(_ user: UserID) { devices.withLock { $0.remove(of: user) { _ in true } } }

    /// The number of additions so far. A caller that removes devices because of an answer of the store reads this
    /// number before it asks the store.
    var mark: UInt64 { devices.withLock { $0.additions } }

    /// Forgets the devices whose tokens were removed when logins were revoked. If the scope does not name the devices,
    /// the devices stay in memory until ``forgetGone(of:)`` is called.
    ///
    /// - Parameter mark: the value of ``mark`` before the revocation.
    func forget(_ scope: RevocationScope, since mark: UInt64) {
        devices.withLock { devices in
            switch scope {
            case .pushToken(let device, let user), .device(let device, let user):
                devices.remove(of: user, since: mark) { $0 == device }
            case .allTokens(of: let user, except: nil):
                devices.remove(of: user, since: mark) { _ in true }
            case .allTokens(of: _, except: .some), .token:
                break
            }
        }
    }

    /// Reads which devices of a user have tokens, and forgets the others. If a token was set during the read, nothing
    /// is forgotten.
    func forgetGone(of user: UserID) async throws(HermesError) {
        let mark = mark
        let stored = try await store.devicesWithPushTokens(of: user)
        devices.withLock { $0.remove(of: user, since: mark) { !stored.contains($0) } }
    }

    /// Reads which devices have tokens.
    ///
    /// - Returns: the devices that were not known to have a token. They include devices that an earlier call found
    ///   before it failed.
    @discardableResult
    package func load() async throws(HermesError) -> [DeviceKey] {
        var last: TokenOwner?
        while true {
            let page = try await store.devicesWithPushTokens(after: last, limit: StoreSettings.maxPageEntries)
            guard let end = page.last else { return Array(devices.withLock { $0.takeFound() }) }
            last = end
            devices.withLock { $0.addStored(page) }
        }
    }

    /// For each of these users, returns the devices that have tokens. Users without such devices are left out.
    func devices(of users: some Sequence<UserID>) -> [UserID: [DeviceID]] {
        devices.withLock { devices in
            var found: [UserID: [DeviceID]] = [:]
            guard !devices.isEmpty else { return found }
            for user in users {
                let own = devices[user]
                if !own.isEmpty { found[user] = own }
            }
            return found
        }
    }
}
