// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import Logging

/// MQTT and the native protocol over WebSocket on the HTTP port.
package struct WebSocketSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// The web pages that may open a WebSocket; empty: see ``WebOrigins``.
    package var origins: [String]

    package init(isEnabled: Bool = true, origins: [String] = []) {
        self.isEnabled = isEnabled
        self.origins = origins
    }
}

/// The whole configuration, checked.
package struct ServerSettings: Sendable {
    /// The store of accounts and messages.
    package enum StoreKind: String, CaseIterable, Sendable {
        case sqlite
        /// Lost when the server ends.
        case memory
    }

    /// The meaning of "committed".
    package enum Durability: String, CaseIterable, Sendable {
        /// Survives the death of the process.
        case normal
        /// Survives a power cut as well.
        case full
    }

    package var dataDirectory: String
    package var store: StoreKind
    package var durability: Durability
    /// The number of days for which delivered messages are kept; 0: none.
    package var historyDays: Int
    /// Undelivered messages are deleted after this time.
    package var retention: Duration
    /// The largest content of one message.
    package var maxMessageBytes: Int
    /// The limits of one account's inbox.
    package var inbox: InboxBudget
    /// The largest size of one account's unread messages, in bytes.
    package var maxUnreadBytes: Int
    /// The bytes that one account's messages may add to the store per day.
    package var maxStoredBytes: Int
    /// The time after sending within which a message can be recalled.
    package var recallWindow: Duration
    /// The accounts that may write to another one, unless that one blocks them.
    package var acceptedFrom: MessageSettings.Senders
    package var registration: RegistrationRule
    /// The accounts that one address may register in an hour; 0: no limit.
    package var registrationsPerAddress: Int
    /// The accounts that may be registered in an hour; 0: no limit.
    package var registrationsPerHour: Int
    /// The number of contact requests of one account in an hour.
    package var contactRequestsPerHour: Int
    /// The number of inbox entries that one account may cause by groups in an hour.
    package var groupEntriesPerHour: Int
    package var maxDevices: Int
    package var maxGroups: Int
    /// Not a setting: the cost of a new password hash, lowered only by tests.
    package var passwordCost = PasswordHasher.Parameters.standard
    package var loginFailuresPerAddress: Int
    package var passwordHashesAtOnce: Int
    package var http: ListenerSettings
    package var webSocket: WebSocketSettings
    /// The proxies whose headers give the address of a client.
    package var trustedProxies: [IPNetwork]
    /// The web pages of the HTTP port.
    package var pages: WebPages
    /// The origins whose pages may show a live room in a frame.
    package var frames: [String] = []
    /// Not a setting: the time limits of the HTTP port, shortened only by tests.
    package var httpLimits = HTTPExchange.Limits()
    package var api: APISettings
    package var console = ConsoleSettings()
    /// The values as they were given, for people to see; empty unless they were read by ``load(_:)``.
    package var inForce: [ConfiguredValue] = []
    /// The event streams of the API.
    package var events = EventSettings()
    package var gateways: GatewaySettings
    package var push = PushSettings()
    package var webhooks = WebhookSettings()
    package var logLevel: Logger.Level
    package var logFormat: LogFormat
    package var shutdownDeadline: Duration
    /// 0: one per core.
    package var eventLoops: Int
}
