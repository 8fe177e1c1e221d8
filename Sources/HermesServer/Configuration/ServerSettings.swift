// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import Logging

/// MQTT and the native protocol over WebSocket on the HTTP port.
package struct WebSocketSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// The web pages that may open one; empty: see ``WebOrigins``.
    package var origins: [String]

    package init(isEnabled: Bool = true, origins: [String] = []) {
        self.isEnabled = isEnabled
        self.origins = origins
    }
}

/// All that the configuration says, checked.
package struct ServerSettings: Sendable {
    /// Where accounts and messages are kept.
    package enum StoreKind: String, CaseIterable, Sendable {
        case sqlite
        /// Lost when the server ends.
        case memory
    }

    /// What "committed" means.
    package enum Durability: String, CaseIterable, Sendable {
        /// Survives the death of the process.
        case normal
        /// Survives a power cut as well.
        case full
    }

    package var dataDirectory: String
    package var store: StoreKind
    package var durability: Durability
    /// Delivered messages are kept this many days; 0: not at all.
    package var historyDays: Int
    /// What was not delivered by then is deleted.
    package var retention: Duration
    /// The largest content of one message.
    package var maxMessageBytes: Int
    /// What may wait in one account's inbox.
    package var inbox: InboxBudget
    /// What may wait of one account's messages, in bytes.
    package var maxUnreadBytes: Int
    /// How long after it was sent a message can be taken back.
    package var recallWindow: Duration
    package var registration: RegistrationRule
    /// Accounts that one address may make in an hour; 0: any number.
    package var registrationsPerAddress: Int
    /// Accounts that all may make in an hour; 0: any number.
    package var registrationsPerHour: Int
    /// How many accounts one account may ask to be contacts in an hour.
    package var contactRequestsPerHour: Int
    /// How many entries of inboxes one account may cause by groups in an hour.
    package var groupEntriesPerHour: Int
    package var maxDevices: Int
    package var maxGroups: Int
    /// No setting: what a new password hash costs, lowered by tests alone.
    package var passwordCost = PasswordHasher.Parameters.standard
    package var loginFailuresPerAddress: Int
    package var passwordHashesAtOnce: Int
    package var http: ListenerSettings
    package var webSocket: WebSocketSettings
    /// Whose headers tell the address of a client.
    package var trustedProxies: [IPNetwork]
    /// No setting: how long things may take on the HTTP port, shortened by tests alone.
    package var httpLimits = HTTPExchange.Limits()
    package var api: APISettings
    package var gateways: GatewaySettings
    package var push = PushSettings()
    package var webhooks = WebhookSettings()
    package var logLevel: Logger.Level
    package var logFormat: LogFormat
    package var shutdownDeadline: Duration
    /// 0: one per core.
    package var eventLoops: Int
}
