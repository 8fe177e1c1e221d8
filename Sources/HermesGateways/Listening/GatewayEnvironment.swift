// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import Logging

/// The objects that all gateways of a server share.
package final class GatewayEnvironment: Sendable {
    package let messenger: Messenger
    package let loops: LoopContexts
    package let settings: GatewaySettings
    /// Counts the connections of all listeners together.
    package let counter: ConnectionCounter
    /// The budget of bytes that the unauthenticated connections of all listeners may send.
    package let loginBudget: LoginBudget
    /// The request rates of accounts and addresses, over all their connections.
    package let rates: SharedRates
    package let logger: Logger
    /// The log of failed logins at all listeners.
    package let logins: LoginLog
    /// The topic rules.
    package let access: TopicAccess
    /// Identifies MQTT clients.
    package let authenticator: ClientAuthenticator
    private let tokenVerifier: (any TokenVerifier)?
    /// The server's name and version, for clients' logs.
    package let serverVersion: String
    /// The tickets that clients of a stopping server get.
    let tickets: ReconnectTickets

    /// Counts the members of a room when a client of any listener enters the room.
    let roomCounts: RoomCounts
    /// The wills of the MQTT clients of all listeners.
    let wills: MQTTWills
    /// The broker's statistics for `$SYS`.
    let brokerStatistics: MQTTStatistics

    package init(
        messenger: Messenger,
        loops: LoopContexts,
        settings: GatewaySettings = GatewaySettings(),
        access: TopicAccess = TopicAccess(),
        tokenVerifier: (any TokenVerifier)? = nil,
        logger: Logger,
        serverVersion: String = "hermes",
        tickets: ReconnectTickets = ReconnectTickets(),
        counter: ConnectionCounter? = nil
    ) {
        self.tickets = tickets
        self.messenger = messenger
        logins = LoginLog(time: messenger.time)
        self.loops = loops
        self.settings = settings
        self.access = access
        self.tokenVerifier = tokenVerifier
        authenticator = ClientAuthenticator(
            accounts: messenger.accounts,
            verifier: tokenVerifier,
            time: messenger.time,
            isAnonymousAllowed: settings.isAnonymousAllowed
        )
        loops.topicPlane.share(with: messenger.durable)
        messenger.topicLinks?.connect(to: loops.topicPlane) { await loops.remove($0) }
        roomCounts = RoomCounts(
            uptime: { [time = messenger.time] in time.uptime() },
            count: { [plane = loops.topicPlane] room in await plane.subscriberCount(of: room.topic) }
        )
        let limits = settings.limits
        rates = SharedRates(
            perAccount: limits.requestsPerSecondPerAccount,
            perAddress: limits.requestsPerSecondPerAddress
        )
        self.counter = counter ?? ConnectionCounter(limits)
        loginBudget = LoginBudget(limit: limits.maxLoginBytes)
        wills = MQTTWills(messenger: messenger, access: access, loops: loops, memoryBytes: limits.memoryBytes)
        messenger.wills?.inherited.observe { [wills] in wills.inherited($0) }
        messenger.durable.ended.observe { [wills] in wills.sessionEnded($0) }
        messenger.durable.nameFreed.observe { [wills] in wills.nameFreed($0) }
        brokerStatistics = MQTTStatistics(
            loops: loops,
            messenger: messenger,
            interval: settings.broker.sysInterval,
            version: serverVersion
        )
        self.logger = logger
        self.serverVersion = serverVersion
        access.replaced.observe {
            for loop in loops.all { loop.post(.run { loop.accessChanged() }) }
        }
    }

    /// Creates the environment of a listener that requires an account.
    init(withoutAnonymous other: GatewayEnvironment) {
        messenger = other.messenger
        loops = other.loops
        counter = other.counter
        loginBudget = other.loginBudget
        rates = other.rates
        logger = other.logger
        logins = other.logins
        access = other.access
        tokenVerifier = other.tokenVerifier
        serverVersion = other.serverVersion
        tickets = other.tickets
        roomCounts = other.roomCounts
        wills = other.wills
        brokerStatistics = other.brokerStatistics
        var settings = other.settings
        settings.requireAccounts()
        self.settings = settings
        authenticator = ClientAuthenticator(
            accounts: messenger.accounts,
            verifier: tokenVerifier,
            time: messenger.time,
            isAnonymousAllowed: false
        )
    }

    /// The number and the size in bytes of the MQTT wills that wait for their delay or for the store.
    package var waitingWills: Holding { wills.waiting }

    /// Returns the environment of a listener's connections.
    package func environment(for listener: ListenerSettings) -> GatewayEnvironment {
        listener.isAnonymousAllowed || !settings.isAnonymousAllowed ? self : GatewayEnvironment(withoutAnonymous: self)
    }
}
