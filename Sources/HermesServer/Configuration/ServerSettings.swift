// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways

/// The whole configuration. Each group declares its settings in its own file: the property, the key with its default,
/// allowed values and description, and the reading of the value.
package struct ServerSettings: Sendable {
    package var data = DataSettings()
    /// The store's own settings. `StoreSettings(_:)` adds those that follow from other groups.
    package var store = StoreSettings()
    package var messages = MessageSettings()
    package var accounts = AccountSettings()
    package var gateways = GatewaySettings()
    package var webSocket = WebSocketSettings()
    package var http = HTTPSettings()
    package var pages = PageSettings()
    package var api = APISettings()
    /// The event streams of the API.
    package var events = EventSettings()
    package var console = ConsoleSettings()
    package var push = PushSettings()
    package var webhooks = WebhookSettings()
    package var log = LogSettings()
    package var process = ProcessSettings()
    /// The values of all settings and their sources, for people to see; empty unless ``load(_:)`` read the settings.
    package var inForce: [ConfiguredValue] = []

    /// Creates the settings that apply if nothing is configured.
    package init() {}
}

extension ServerSettings {
    private static let groups: [[SettingDescriptor]] = [
        DataSettings.settings, StoreSettings.settings, MessageSettings.settings, AccountSettings.settings,
        GatewaySettings.settings, WebSocketSettings.settings, HTTPSettings.settings, PageSettings.settings,
        APISettings.settings, EventSettings.settings, ConsoleSettings.settings, PushSettings.settings,
        WebhookSettings.settings, LogSettings.settings, ProcessSettings.settings,
    ]

    /// The order of the documentation: a setting stands at the longest of these prefixes that its key has. Settings
    /// with the same prefix stand in the order of their groups. Every key has the empty prefix; the sections of the
    /// protocols stand there.
    private static let order = [
        "data.", "store.", "listeners.", "access.",
        "accounts.registration", "accounts.devices", "accounts.groups", "accounts.",
        "limits.", "limits.message", "limits.inbox", "limits.unread", "limits.stored", "limits.loginFailures",
        "limits.registrations", "limits.contactRequests", "limits.groupEntries",
        "messages.", "", "http.", "console.", "push.", "webhooks.", "log.", "shutdown.", "eventLoops",
    ]

    /// All settings, in the order of the documentation.
    package static let all: [SettingDescriptor] = {
        let placed = groups.joined().map { (place: place(of: $0.key), setting: $0) }
        return order.indices.flatMap { place in placed.filter { $0.place == place }.map { $0.setting } }
    }()

    /// Returns the index of the longest prefix of a key in ``order``.
    private static func place(of key: String) -> Int? {
        order.indices.filter { key.hasPrefix(order[$0]) }.max { order[$0].utf8.count < order[$1].utf8.count }
    }

    /// - Throws: for invalid values and combinations.
    package init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        data = try DataSettings(values)
        store = try StoreSettings(values)
        messages = try MessageSettings(values)
        accounts = try AccountSettings(values)
        gateways = try GatewaySettings(values)
        webSocket = try WebSocketSettings(values)
        http = try HTTPSettings(values)
        pages = try PageSettings(values)
        // Both pages need a WebSocket.
        if !webSocket.isEnabled { pages.served.subtract([.chat, .room]) }
        api = try APISettings(values)
        events = try EventSettings(values)
        console = try ConsoleSettings(values)
        push = try PushSettings(values)
        webhooks = try WebhookSettings(values)
        log = try LogSettings(values)
        process = try ProcessSettings(values)
        try refuseTakenNames()
        try refuseAnonymousOverHTTP()
        try refuseNoListener()
        try refuseSharedAddresses()
    }

    /// Refuses settings that let clients register while tokens or certificates prove names. Otherwise somebody could
    /// take such a name by registering it first.
    private func refuseTakenNames() throws(SettingsError) {
        guard accounts.registration != .closed else { return }
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
        guard http.listener.isEnabled, webSocket.isEnabled, !http.listener.isLoopback else { return }
        guard isAnonymousAllowedOverHTTP, !gateways.access.isAnonymousAllowedOnPublic else { return }
        throw SettingsError(problems: [
            "listeners.http.host = \"\(http.listener.host)\" can be reached by other machines while access.anonymous "
                + "is true and MQTT is served at /mqtt; set listeners.http.anonymous: false, "
                + "http.websocket.enabled: false, or access.anonymousOnPublic: true if that is what you want"
        ])
    }

    /// Returns the name of the gateway behind a listener, and whether the listener is encrypted.
    func kind(ofListener name: String) -> (gateway: String, isEncrypted: Bool) {
        if name == "http" { return ("http", http.listener.tls != nil) }
        if name == "console" { return ("console", console.listener.tls != nil) }
        let listener = gateways.listeners.first { $0.name == name }
        return (listener?.gateway ?? name, listener?.settings.tls != nil)
    }

    /// Whether somebody may connect over WebSocket without an account.
    var isAnonymousAllowedOverHTTP: Bool { gateways.access.isAnonymousAllowed && http.listener.isAnonymousAllowed }

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
