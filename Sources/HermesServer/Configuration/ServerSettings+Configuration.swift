// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesGateways
import Logging

extension ServerSettings {
    private static let dataDirectory = Setting.path(
        "data.directory",
        default: "./hermes-data",
        "The folder of the database, its lock and the control socket; created if missing."
    )
    private static let store = Setting<StoreKind>.choice(
        "store.kind",
        default: .sqlite,
        "Where accounts and messages are kept; memory loses them when the server ends."
    )
    private static let durability = Setting<Durability>.choice(
        "store.durability",
        default: .normal,
        "What an acknowledgement promises: normal survives a killed process, full a power cut as well."
    )
    private static let historyDays = Setting.number(
        "store.historyDays",
        default: 0,
        in: 0...3650,
        "How many days delivered messages stay readable; 0 keeps a message only until it is delivered."
    )
    private static let retention = Setting.duration(
        "store.retention",
        default: .seconds(30 * 86_400),
        in: .seconds(60) ... .seconds(3650 * 86_400),
        "How long a message waits for a device at most."
    )
    private static let messageBytes = Setting.byteCount(
        "limits.message",
        default: 65_536,
        in: 1024...(1 << 20),
        "The largest content of one message."
    )
    private static let inboxEntries = Setting.number(
        "limits.inboxEntries",
        default: 100_000,
        in: 1000...100_000_000,
        "Entries that wait in one account's inbox; one sender, and one group, may have a quarter of it."
    )
    private static let inboxBytes = Setting.byteCount(
        "limits.inbox",
        default: 128 << 20,
        in: (8 << 20)...(1 << 40),
        "What the entries that wait in one account's inbox may take; one sender, and one group, may have a quarter of it."
    )
    private static let unreadBytes = Setting.byteCount(
        "limits.unreadPerAccount",
        default: 128 << 20,
        in: (8 << 20)...(1 << 40),
        "What may wait of one account's messages to others, in all their inboxes together, until they are read; messages to "
            + "groups count for the inboxes alone."
    )
    private static let recallWindow = Setting.duration(
        "messages.recallWindow",
        default: .seconds(120),
        in: .seconds(0) ... .seconds(365 * 86_400),
        "How long after it was sent a message can be taken back."
    )
    private static let contactRequests = Setting.number(
        "limits.contactRequestsPerHour",
        default: 200,
        in: 1...1_000_000,
        "How many others one account may ask to be contacts in an hour."
    )
    private static let groupEntries = Setting.number(
        "limits.groupEntriesPerHour",
        default: 20_000,
        in: 1...100_000_000,
        "Entries of inboxes that one account may cause in an hour by creating and changing groups."
    )
    private static let maxDevices = Setting.number(
        "accounts.devices",
        default: 50,
        in: 1...1000,
        "Devices of an account; a new one beyond that is refused until one is removed."
    )
    private static let maxGroups = Setting.number(
        "accounts.groups",
        default: 1_000,
        in: 1...100_000,
        "In how many groups an account may be; nobody can be added to more."
    )
    private static let registration = Setting<RegistrationRule>.choice(
        "accounts.registration",
        default: .open,
        "Who may create an account: open is anybody, invitation who has a code ('hermes invitation create'), closed "
            + "nobody but the operator ('hermes user add')."
    )
    private static let registrationsPerAddress = Setting.number(
        "limits.registrationsPerAddress",
        default: 60,
        in: 0...1_000_000,
        "Accounts per hour that clients of one IP address may create without invitation; an IPv6 network of 64 bits is one "
            + "address; 0 is no limit."
    )
    private static let registrationsPerHour = Setting.number(
        "limits.registrationsPerHour",
        default: 1000,
        in: 0...10_000_000,
        "Accounts per hour that all clients together may create without invitation; 0 is no limit."
    )
    private static let passwordHashesAtOnce = Setting.number(
        "accounts.passwordHashesAtOnce",
        default: 2,
        in: 1...64,
        "How many passwords of logins are hashed at the same time, and half as many new ones; each takes 16 MiB meanwhile."
    )
    private static let loginFailures = Setting.number(
        "limits.loginFailuresPerAddress",
        default: 20,
        in: 1...1_000_000,
        "Failed logins per minute from one IP address before further ones are delayed."
    )
    private static let httpKeys = ListenerSettings.Keys(
        "http",
        title: "HTTP",
        port: 8080,
        isEnabled: true,
        features: [.proxied, .anonymous]
    )
    private static let webSocketEnabled = Setting.flag(
        "http.websocket.enabled",
        default: true,
        "Whether MQTT is served over WebSocket at /mqtt on the HTTP port, and the native protocol at /ws; whatever their "
            + "own listeners are."
    )
    private static let webSocketOrigins = Setting<[String]>.texts(
        "http.websocket.origins",
        maxCount: 100,
        maxBytes: 255,
        "Origins whose web pages may open a WebSocket, as https://example.org; empty: any if access.anonymous or "
            + "listeners.http.anonymous is false, else the server's own pages, or on a loopback address this machine's."
    )
    private static let trustedProxies = Setting<[IPNetwork]>.networks(
        "http.trustedProxies",
        maxCount: 100,
        "Proxies whose X-Forwarded-For or Forwarded tells the client's address; from anybody else these headers are ignored."
    )
    private static let logLevel = Setting<Logger.Level>.choice(
        "log.level",
        default: .info,
        "The least important events that are logged."
    )
    private static let logFormat = Setting<LogFormat>.choice(
        "log.format",
        default: .logfmt,
        "How a line of the log is written."
    )
    private static let shutdownDeadline = Setting.duration(
        "shutdown.deadline",
        default: .seconds(10),
        in: .milliseconds(100) ... .seconds(600),
        "How long a stopping server takes leave of its clients before it closes the rest."
    )
    private static let eventLoops = Setting.number(
        "eventLoops",
        default: 0,
        in: 0...1024,
        "Threads that serve connections; 0 takes one per core."
    )

    /// All settings, in the order of the documentation.
    package static let all: [SettingDescriptor] =
        [
            dataDirectory.descriptor, store.descriptor, durability.descriptor, historyDays.descriptor,
            retention.descriptor,
        ] + GatewaySettings.settings.filter { $0.key.hasPrefix("listeners.") } + httpKeys.all
        + GatewaySettings.settings.filter { $0.key.hasPrefix("access.") }
        + [registration.descriptor, maxDevices.descriptor, maxGroups.descriptor, passwordHashesAtOnce.descriptor]
        + GatewaySettings.settings.filter { $0.key.hasPrefix("limits.") } + [
            messageBytes.descriptor, inboxBytes.descriptor, inboxEntries.descriptor, unreadBytes.descriptor,
            loginFailures.descriptor, registrationsPerAddress.descriptor,
            registrationsPerHour.descriptor, contactRequests.descriptor, groupEntries.descriptor,
            recallWindow.descriptor,
        ]
        + GatewaySettings.settings.filter { setting in
            !["listeners.", "access.", "limits."].contains { setting.key.hasPrefix($0) }
        }
        + [webSocketEnabled.descriptor, webSocketOrigins.descriptor, trustedProxies.descriptor] + APISettings.all
        + PushSettings.settings + WebhookSettings.settings
        + [logLevel.descriptor, logFormat.descriptor, shutdownDeadline.descriptor, eventLoops.descriptor]

    /// - Throws: for invalid values and combinations.
    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            dataDirectory: try values.value(of: Self.dataDirectory),
            store: try values.value(of: Self.store),
            durability: try values.value(of: Self.durability),
            historyDays: try values.value(of: Self.historyDays),
            retention: try values.value(of: Self.retention),
            maxMessageBytes: try values.value(of: Self.messageBytes),
            inbox: InboxBudget(
                maxEntries: try values.value(of: Self.inboxEntries),
                maxBytes: try values.value(of: Self.inboxBytes)
            ),
            maxUnreadBytes: try values.value(of: Self.unreadBytes),
            recallWindow: try values.value(of: Self.recallWindow),
            registration: try values.value(of: Self.registration),
            registrationsPerAddress: try values.value(of: Self.registrationsPerAddress),
            registrationsPerHour: try values.value(of: Self.registrationsPerHour),
            contactRequestsPerHour: try values.value(of: Self.contactRequests),
            groupEntriesPerHour: try values.value(of: Self.groupEntries),
            maxDevices: try values.value(of: Self.maxDevices),
            maxGroups: try values.value(of: Self.maxGroups),
            loginFailuresPerAddress: try values.value(of: Self.loginFailures),
            passwordHashesAtOnce: try values.value(of: Self.passwordHashesAtOnce),
            http: try ListenerSettings(values, Self.httpKeys),
            webSocket: WebSocketSettings(
                isEnabled: try values.value(of: Self.webSocketEnabled),
                origins: try values.value(of: Self.webSocketOrigins)
            ),
            trustedProxies: try values.value(of: Self.trustedProxies),
            api: try APISettings(values),
            gateways: try GatewaySettings(values),
            push: try PushSettings(values),
            webhooks: try WebhookSettings(values),
            logLevel: try values.value(of: Self.logLevel),
            logFormat: try values.value(of: Self.logFormat),
            shutdownDeadline: try values.value(of: Self.shutdownDeadline),
            eventLoops: try values.value(of: Self.eventLoops)
        )
        try refuseTakenNames()
        try refuseAnonymousOverHTTP()
    }

    /// Refuses open registration where names are proved elsewhere: whoever registers such a name first must not own it.
    private func refuseTakenNames() throws(SettingsError) {
        guard registration != .closed else { return }
        let trusting = gateways.listeners.first {
            $0.settings.isEnabled && $0.settings.tls?.isIdentityFromCertificate == true
        }
        let key =
            gateways.access.tokens != nil
            ? "access.jwt.keys" : trusting.map { "listeners.\($0.name).tls.identityFromCertificate" }
        guard let key else { return }
        throw SettingsError(problems: [
            "\(key) lets others say who a client is, while anybody may register any name: set accounts.registration: closed"
        ])
    }

    private func refuseAnonymousOverHTTP() throws(SettingsError) {
        guard http.isEnabled, webSocket.isEnabled, !http.isLoopback else { return }
        guard isAnonymousAllowedOverHTTP, !gateways.access.isAnonymousAllowedOnPublic else { return }
        throw SettingsError(problems: [
            "listeners.http.host = \"\(http.host)\" is reached by other machines while access.anonymous is true and MQTT is "
                + "served at /mqtt; set listeners.http.anonymous: false, http.websocket.enabled: false, or "
                + "access.anonymousOnPublic: true if that is what you want"
        ])
    }

    /// Whether somebody may come in over WebSocket without an account.
    var isAnonymousAllowedOverHTTP: Bool { gateways.access.isAnonymousAllowed && http.isAnonymousAllowed }

    /// What is in force if nothing is configured.
    /// - Throws: never, unless a default is not allowed, which is tested.
    package static func defaults() throws(SettingsError) -> ServerSettings { try ServerSettings(SettingValues()) }

    /// Reads and checks all sources.
    package static func load(_ sources: SettingSources) throws(SettingsError) -> ServerSettings {
        try ServerSettings(sources.load(all(for: sources)))
    }

    /// All settings, including those of the listeners that the sources name.
    package static func all(for sources: SettingSources) -> [SettingDescriptor] {
        all + sources.furtherListeners().flatMap(FurtherListener.settings)
    }
}
