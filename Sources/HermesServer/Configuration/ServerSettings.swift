// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import Logging

/// MQTT and the native protocol over WebSocket on the HTTP port.
package struct WebSocketSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// The origins of the web pages that may open a WebSocket. For an empty list, see ``WebOrigins``.
    package var origins: [String]

    package init(isEnabled: Bool = true, origins: [String] = []) {
        self.isEnabled = isEnabled
        self.origins = origins
    }
}

/// The whole configuration, after it was checked.
package struct ServerSettings: Sendable {
    /// The store of accounts and messages.
    package enum StoreKind: String, CaseIterable, Sendable {
        case sqlite
        /// In memory: the data is lost when the server ends.
        case memory
    }

    /// Which faults the data survives after it has been committed.
    package enum Durability: String, CaseIterable, Sendable {
        /// Committed data survives if the process is killed.
        case normal
        /// Committed data also survives a power cut.
        case full
    }

    package var dataDirectory: String
    package var store: StoreKind
    package var durability: Durability
    /// The number of days, counted from sending, for which delivered messages are kept; 0 keeps them only until
    /// delivery.
    package var historyDays: Int
    /// Undelivered messages are deleted after this time.
    package var retention: Duration
    /// The largest content of one message, in bytes.
    package var maxMessageBytes: Int
    /// The limits of one account's inbox.
    package var inbox: InboxBudget
    /// The largest size of one account's unread messages, in bytes.
    package var maxUnreadBytes: Int
    /// The bytes that one account's messages may add to the store per day.
    package var maxStoredBytes: Int
    /// The time after sending within which a message can be recalled.
    package var recallWindow: Duration
    /// The accounts that may write to an account that does not block them.
    package var acceptedFrom: MessageSettings.Senders
    package var registration: RegistrationRule
    /// The largest number of accounts that one address may register in an hour; 0 means no limit.
    package var registrationsPerAddress: Int
    /// The largest number of accounts that may be registered in an hour; 0 means no limit.
    package var registrationsPerHour: Int
    /// The largest number of contact requests that one account may send in an hour.
    package var contactRequestsPerHour: Int
    /// The largest number of inbox entries that one account may cause in an hour by creating and changing groups.
    package var groupEntriesPerHour: Int
    package var maxDevices: Int
    package var maxGroups: Int
    /// The cost of a new password hash. This is not a setting; only tests lower it.
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
    /// The time limits of the HTTP port. They are not a setting; only tests shorten them.
    package var httpLimits = HTTPExchange.Limits()
    package var api: APISettings
    package var console = ConsoleSettings()
    /// The values of all settings and their sources, for people to see; empty unless ``load(_:)`` read the settings.
    package var inForce: [ConfiguredValue] = []
    /// The event streams of the API.
    package var events = EventSettings()
    package var gateways: GatewaySettings
    package var push = PushSettings()
    package var webhooks = WebhookSettings()
    package var logLevel: Logger.Level
    package var logFormat: LogFormat
    package var shutdownDeadline: Duration
    /// The number of threads that serve connections; 0 means one thread per core.
    package var eventLoops: Int
}
