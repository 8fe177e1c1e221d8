// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesCore
package import HermesGateways
package import NIOPosix

/// A served gateway with two accounts, ann (the first) and bob (the second), who are contacts, have a group, and have
/// written to each other.
package struct SessionWorld<G: Gateway> {
    package let served: ServedGateway<G>
    package let ann: FuzzAccount
    package let bob: FuzzAccount
    private let users: [UInt32: UserID]

    package init(_ group: MultiThreadedEventLoopGroup) {
        let served = ServedGateway(
            G.self,
            group: group,
            storeSettings: StoreSettings(historyPeriod: .seconds(86_400))
        )
        let messenger = served.environment.messenger
        let (ann, bob) = blocking { () async -> (LogIn, LogIn) in
            do throws(HermesError) {
                let ann = try await Self.register("ann", messenger)
                let bob = try await Self.register("bob", messenger)
                try await messenger.contacts.apply(.request, to: bob.user, by: ann.principal)
                try await messenger.contacts.apply(.accept, to: ann.user, by: bob.principal)
                _ = try await messenger.groups.answer(.create(name: "friends", members: [bob.user]), by: ann.principal)
                return (ann, bob)
            } catch {
                broken("no accounts: \(error)")
            }
        }
        self.served = served
        (self.ann, self.bob) = (ann.account, bob.account)
        users = [ann.account.uid: ann.user, bob.account.uid: bob.user]
    }

    private struct LogIn: Sendable {
        let principal: Principal
        let account: FuzzAccount
        var user: UserID { principal.user }
    }

    private static func register(_ name: String, _ messenger: Messenger) async throws(HermesError) -> LogIn {
        guard let device = DeviceID("first") else { broken("no device id") }
        let login = try await messenger.accounts.register(
            nickName: name,
            password: FuzzAccount.password,
            device: DeviceDescription(id: device),
            address: nil
        )
        let uid = UInt32(clamping: login.principal.user.rawValue)
        return LogIn(
            principal: login.principal,
            account: FuzzAccount(uid: uid, nickName: name, token: login.token ?? "")
        )
    }

    func isOnline(_ account: FuzzAccount) -> Bool {
        users[account.uid].map { served.environment.messenger.devices.isOnline($0) } ?? false
    }
}
