// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import Logging

/// What all gateways of a server share.
package final class GatewayEnvironment: Sendable {
    package let messenger: Messenger
    package let loops: LoopContexts
    package let settings: GatewaySettings
    /// Counts the connections of all listeners together.
    package let counter: ConnectionCounter
    /// What those may have sent that have not logged in, over all listeners together.
    package let loginBudget: LoginBudget
    /// What accounts and addresses may cause, over all their connections.
    package let rates: SharedRates
    package let logger: Logger
    /// Who may publish and subscribe to what.
    package let access: TopicAccess
    /// Who an MQTT client is.
    package let authenticator: MQTTAuthenticator
    private let tokenVerifier: (any TokenVerifier)?
    /// Told to clients, for their logs: name and version.
    package let serverVersion: String
    /// For those who are sent away.
    let tickets: ReconnectTickets

    /// Wills of MQTT clients, whichever listener they came by.
    let wills: MQTTWills
    /// What the broker tells about itself.
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
        self.loops = loops
        self.settings = settings
        self.access = access
        self.tokenVerifier = tokenVerifier
        authenticator = MQTTAuthenticator(
            accounts: messenger.accounts,
            verifier: tokenVerifier,
            time: messenger.time,
            isAnonymousAllowed: settings.isAnonymousAllowed
        )
        loops.topicPlane.share(with: messenger.durable)
        let limits = settings.limits
        rates = SharedRates(
            perAccount: limits.requestsPerSecondPerAccount,
            perAddress: limits.requestsPerSecondPerAddress
        )
        self.counter = counter ?? ConnectionCounter(limits)
        loginBudget = LoginBudget(limit: limits.maxLoginBytes)
        wills = MQTTWills(durable: messenger.durable, time: messenger.time)
        brokerStatistics = MQTTStatistics(
            loops: loops,
            durable: messenger.durable,
            interval: settings.broker.sysInterval,
            version: serverVersion
        )
        self.logger = logger
        self.serverVersion = serverVersion
        access.whenReplaced {
            for loop in loops.all { loop.post(.run { loop.accessChanged() }) }
        }
    }

    /// The same for a listener where nobody comes in without an account.
    init(withoutAnonymous other: GatewayEnvironment) {
        messenger = other.messenger
        loops = other.loops
        counter = other.counter
        loginBudget = other.loginBudget
        rates = other.rates
        logger = other.logger
        access = other.access
        tokenVerifier = other.tokenVerifier
        serverVersion = other.serverVersion
        tickets = other.tickets
        wills = other.wills
        brokerStatistics = other.brokerStatistics
        var settings = other.settings
        settings.access.isAnonymousAllowed = false
        settings.room.isAnonymousAllowed = false
        settings.device.isTokenRequired = true
        self.settings = settings
        authenticator = MQTTAuthenticator(
            accounts: messenger.accounts,
            verifier: tokenVerifier,
            time: messenger.time,
            isAnonymousAllowed: false
        )
    }

    /// What a listener's connections are served with.
    package func environment(for listener: ListenerSettings) -> GatewayEnvironment {
        listener.isAnonymousAllowed || !settings.isAnonymousAllowed ? self : GatewayEnvironment(withoutAnonymous: self)
    }
}
