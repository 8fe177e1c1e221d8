// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesGateways
import Logging

extension ServerSettings {
    private static let dataDirectory = Setting.path(
        "data.directory",
        default: "./hermes-data",
        "The directory of the database, its lock and the control socket. The server creates the directory if it is "
            + "missing."
    )
    private static let store = Setting<StoreKind>.choice(
        "store.kind",
        default: .sqlite,
        "Where accounts and messages are stored. With 'memory', they are lost when the server stops."
    )
    private static let durability = Setting<Durability>.choice(
        "store.durability",
        default: .normal,
        "Which faults the data survives after it has been acknowledged. With 'normal', it survives if the process is "
            + "killed. With 'full', it also survives a power cut."
    )
    private static let historyDays = Setting.number(
        "store.historyDays",
        default: 0,
        in: 0...3650,
        "The number of days for which a message stays readable after it was sent, even if every device has "
            + "acknowledged it. With 0, a message is deleted when every device has acknowledged it."
    )
    private static let retention = Setting.duration(
        "store.retention",
        default: .seconds(30 * 86_400),
        in: .seconds(60) ... .seconds(3650 * 86_400),
        "How long a message waits for devices that have not acknowledged it."
    )
    private static let messageBytes = Setting.byteCount(
        "limits.message",
        default: 65_536,
        in: 1024...(1 << 20),
        "The largest size of the content of one message."
    )
    private static let inboxEntries = Setting.number(
        "limits.inboxEntries",
        default: 100_000,
        in: 1000...100_000_000,
        "The largest number of entries in one account's inbox. One sender may use a quarter, and one group may use a "
            + "quarter. When half is used, entries from accounts that are not contacts are refused. When an eighth is "
            + "used, an entry is deleted as soon as one device has acknowledged it."
    )
    private static let inboxBytes = Setting.byteCount(
        "limits.inbox",
        default: 128 << 20,
        in: (8 << 20)...(1 << 40),
        "The largest total size of the entries in one account's inbox. One sender may use a quarter, and one group "
            + "may use a quarter. When half is used, entries from accounts that are not contacts are refused. When an "
            + "eighth is used, an entry is deleted as soon as one device has acknowledged it."
    )
    private static let unreadBytes = Setting.byteCount(
        "limits.unreadPerAccount",
        default: 128 << 20,
        in: (8 << 20)...(1 << 40),
        "The largest total size of one account's unread messages in the inboxes of others. Messages to groups do not "
            + "count. When half is used, a further message is accepted only in two cases: it is the account's only "
            + "unread message in the recipient's inbox, or the account's unread messages in that inbox take at most a "
            + "64th of the limit."
    )
    private static let storedBytes = Setting.byteCount(
        "limits.storedPerAccountPerDay",
        default: 4 << 30,
        in: (16 << 20)...(1 << 50),
        "The largest total size of the messages that one account may send per day. A message counts with its content, "
            + "plus 256 bytes, plus 16 bytes for each recipient. The whole amount may be used at once."
    )
    private static let recallWindow = Setting.duration(
        "messages.recallWindow",
        default: .seconds(120),
        in: .seconds(0) ... .seconds(365 * 86_400),
        "The time after sending in which a message can be recalled."
    )
    private static let acceptedFrom = Setting<MessageSettings.Senders>.choice(
        "messages.from",
        default: .everyone,
        "Who may write to an account and add it to groups: every account, or only its contacts. An account that it "
            + "blocks may do neither. In a group, every member may write."
    )
    private static let contactRequests = Setting.number(
        "limits.contactRequestsPerHour",
        default: 200,
        in: 1...1_000_000,
        "The largest number of contact requests that one account may send per hour."
    )
    private static let groupEntries = Setting.number(
        "limits.groupEntriesPerHour",
        default: 20_000,
        in: 1...100_000_000,
        "The largest number of inbox entries that one account may cause per hour by creating and changing groups."
    )
    private static let maxDevices = Setting.number(
        "accounts.devices",
        default: 50,
        in: 1...1000,
        "The largest number of devices of an account. At this limit, a new device is refused until another device is "
            + "removed."
    )
    private static let maxGroups = Setting.number(
        "accounts.groups",
        default: 1_000,
        in: 1...100_000,
        "The largest number of groups that an account may be in. Accounts that are not its contacts can add it to a "
            + "group only while it is in fewer groups than half of this number."
    )
    private static let registration = Setting<RegistrationRule>.choice(
        "accounts.registration",
        default: .open,
        "Who may create an account. With 'open', everybody may. With 'invitation', everybody who has an invitation "
            + "code may ('hermes invitation create'). With 'closed', only the operator may ('hermes user add')."
    )
    private static let registrationsPerAddress = Setting.number(
        "limits.registrationsPerAddress",
        default: 60,
        in: 0...1_000_000,
        "The largest number of accounts per hour that clients of one IP address may create without an invitation. 0 "
            + "means no limit. An IPv6 /64 network counts as one address."
    )
    private static let registrationsPerHour = Setting.number(
        "limits.registrationsPerHour",
        default: 1000,
        in: 0...10_000_000,
        "The largest number of accounts per hour that all clients together may create without an invitation. 0 means "
            + "no limit."
    )
    private static let passwordHashesAtOnce = Setting.number(
        "accounts.passwordHashesAtOnce",
        default: 2,
        in: 1...64,
        "The largest number of login passwords that are hashed at once. In addition, half as many new passwords, but "
            + "at least one, may be hashed at the same time. Each hash takes 16 MiB of memory."
    )
    private static let loginFailures = Setting.number(
        "limits.loginFailuresPerAddress",
        default: 20,
        in: 1...1_000_000,
        "The largest number of failed logins per minute from one IP address. Beyond this number, further logins from "
            + "this address are delayed, unless the account has used the device or the address before."
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
        "Whether the HTTP port serves MQTT over WebSocket at /mqtt and the native protocol at /ws, independently of "
            + "their own listeners."
    )
    private static let webSocketOrigins = Setting<[String]>.texts(
        "http.websocket.origins",
        maxCount: 100,
        maxBytes: 255,
        "The origins whose web pages may open a WebSocket, such as https://example.org. If the port is on a loopback "
            + "address, the pages of this machine may always do so. If the port is on another address and the list is "
            + "empty, the server's own pages may do so. If the list is empty and clients cannot connect anonymously "
            + "(at least one of access.anonymous and listeners.http.anonymous is false), the pages of all other "
            + "origins may do so, too."
    )
    private static let homePage = Setting.flag(
        "http.pages.home",
        default: true,
        "Whether / shows a page with the listeners of this server and first steps."
    )
    private static let apiPage = Setting.flag(
        "http.pages.api",
        default: true,
        "Whether /api shows a page about the HTTP API for human readers."
    )
    private static let chatPage = Setting.flag(
        "http.pages.chat",
        default: true,
        "Whether /chat/ is a chat for browsers. The chat needs http.websocket.enabled."
    )
    private static let roomPage = Setting.flag(
        "http.pages.room",
        default: true,
        "Whether /room/NAME shows the live room of that name. The page needs http.websocket.enabled."
    )
    private static let frames = Setting<[String]>.origins(
        "http.pages.frames",
        maxCount: 100,
        "The origins whose web pages may show a live room in a frame. https://*.example.org stands for all hosts "
            + "below example.org. If the list is empty, no page may do so."
    )
    private static let trustedProxies = Setting<[IPNetwork]>.networks(
        "http.trustedProxies",
        maxCount: 100,
        "The proxies whose X-Forwarded-For and Forwarded headers are trusted. The server ignores these headers if "
            + "anybody else sends them."
    )
    private static let logLevel = Setting<Logger.Level>.choice(
        "log.level",
        default: .info,
        "The lowest level of the log lines that are written."
    )
    private static let logFormat = Setting<LogFormat>.choice(
        "log.format",
        default: .logfmt,
        "The format of log lines."
    )
    private static let shutdownDeadline = Setting.duration(
        "shutdown.deadline",
        default: .seconds(10),
        in: .milliseconds(100) ... .seconds(600),
        "How long a stopping server waits for its clients to leave before it closes their connections."
    )
    private static let eventLoops = Setting.number(
        "eventLoops",
        default: 0,
        in: 0...1024,
        "The number of threads that serve connections. With 0, there is one thread for each core."
    )

    /// All settings, in the order of the documentation.
    package static let all: [SettingDescriptor] =
        [
            dataDirectory.descriptor, store.descriptor, durability.descriptor, historyDays.descriptor,
            retention.descriptor,
        ] + GatewaySettings.settings.filter { $0.key.hasPrefix("listeners.") } + httpKeys.all
        + ConsoleSettings.listenerSettings
        + GatewaySettings.settings.filter { $0.key.hasPrefix("access.") }
        + [registration.descriptor, maxDevices.descriptor, maxGroups.descriptor, passwordHashesAtOnce.descriptor]
        + GatewaySettings.settings.filter { $0.key.hasPrefix("limits.") } + [
            messageBytes.descriptor, inboxBytes.descriptor, inboxEntries.descriptor, unreadBytes.descriptor,
            storedBytes.descriptor,
            loginFailures.descriptor, registrationsPerAddress.descriptor,
            registrationsPerHour.descriptor, contactRequests.descriptor, groupEntries.descriptor,
            recallWindow.descriptor, acceptedFrom.descriptor,
        ]
        + GatewaySettings.settings.filter { setting in
            !["listeners.", "access.", "limits."].contains { setting.key.hasPrefix($0) }
        }
        + [webSocketEnabled.descriptor, webSocketOrigins.descriptor, trustedProxies.descriptor]
        + [homePage.descriptor, apiPage.descriptor, chatPage.descriptor, roomPage.descriptor, frames.descriptor]
        + APISettings.all + EventSettings.all + ConsoleSettings.all
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
            maxStoredBytes: try values.value(of: Self.storedBytes),
            recallWindow: try values.value(of: Self.recallWindow),
            acceptedFrom: try values.value(of: Self.acceptedFrom),
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
            pages: try Self.pages(values),
            frames: try values.value(of: Self.frames),
            api: try APISettings(values),
            console: try ConsoleSettings(values),
            events: try EventSettings(values),
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
        try refuseNoListener()
        try refuseSharedAddresses()
    }

    /// Refuses settings that let clients register while tokens or certificates prove names. Otherwise somebody could
    /// take such a name by registering it first.
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
            "\(key) lets others vouch for a client's name, while clients may register that name themselves: "
                + "set accounts.registration: closed"
        ])
    }

    private func refuseAnonymousOverHTTP() throws(SettingsError) {
        guard http.isEnabled, webSocket.isEnabled, !http.isLoopback else { return }
        guard isAnonymousAllowedOverHTTP, !gateways.access.isAnonymousAllowedOnPublic else { return }
        throw SettingsError(problems: [
            "listeners.http.host = \"\(http.host)\" can be reached by other machines while access.anonymous is true "
                + "and MQTT is served at /mqtt; set listeners.http.anonymous: false, http.websocket.enabled: false, or "
                + "access.anonymousOnPublic: true if that is what you want"
        ])
    }

    private static func pages(_ values: SettingValues) throws(SettingsError) -> WebPages {
        guard WebPages.areBuiltIn else { return [] }
        var pages: WebPages = []
        if try values.value(of: homePage) { pages.insert(.home) }
        if try values.value(of: apiPage) { pages.insert(.api) }
        // Both pages below need a WebSocket.
        guard try values.value(of: webSocketEnabled) else { return pages }
        if try values.value(of: chatPage) { pages.insert(.chat) }
        if try values.value(of: roomPage) { pages.insert(.room) }
        return pages
    }

    /// Returns the name of the gateway behind a listener, and whether the listener is encrypted.
    func kind(ofListener name: String) -> (gateway: String, isEncrypted: Bool) {
        if name == "http" { return ("http", http.tls != nil) }
        if name == "console" { return ("console", console.listener.tls != nil) }
        let listener = gateways.listeners.first { $0.name == name }
        return (listener?.gateway ?? name, listener?.settings.tls != nil)
    }

    /// Whether somebody may connect over WebSocket without an account.
    var isAnonymousAllowedOverHTTP: Bool { gateways.access.isAnonymousAllowed && http.isAnonymousAllowed }

    /// Returns the settings in force if nothing is configured.
    ///
    /// - Throws: only if a default is not an allowed value; tests make sure that all defaults are allowed.
    package static func defaults() throws(SettingsError) -> ServerSettings { try ServerSettings(SettingValues()) }

    /// Reads all sources, and checks the settings.
    package static func load(_ sources: SettingSources) throws(SettingsError) -> ServerSettings {
        let all = all(for: sources)
        let values = try sources.load(all)
        var settings = try ServerSettings(values)
        settings.inForce = ConfigurationText.inForce(values, of: all)
        return settings
    }

    /// Returns all settings, including those of the listeners that the sources name.
    package static func all(for sources: SettingSources) -> [SettingDescriptor] {
        all + sources.furtherListeners().flatMap(FurtherListener.settings)
    }
}
