// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways

/// The whole configuration. Each group has everything about its settings in its own file: the properties with their
/// defaults, and the fields with the keys, the allowed values and the descriptions.
package struct ServerSettings: Sendable {
    package var data = DataSettings()
    /// The store's own settings. A store takes ``storeSettings``.
    package var store = StoreSettings.Own()
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

extension ServerSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .group(\.data), .group(\.store), .group(\.messages), .group(\.accounts), .group(\.gateways),
        .group(\.webSocket), .group(\.http), .group(\.pages), .group(\.api), .group(\.events), .group(\.console),
        .group(\.push), .group(\.webhooks), .group(\.log), .group(\.process),
    ]

    /// The order of the documentation. An entry that ends with `*` is the beginning of keys; any other entry is a whole
    /// key. A setting stands at the longest entry that fits its key. Settings at the same entry stand in the order of
    /// their groups. The entry `*` fits every key; the sections of the protocols stand there.
    private static let order = [
        "data.*", "store.*", "listeners.*", "access.*",
        "accounts.registration", "accounts.devices", "accounts.groups", "accounts.*",
        "limits.*", "limits.message", "limits.inbox*", "limits.unread*", "limits.stored*", "limits.loginFailures*",
        "limits.registrations*", "limits.contactRequests*", "limits.groupEntries*",
        "messages.*", "*", "http.*", "console.*", "push.*", "webhooks.*", "log.*", "shutdown.*", "eventLoops",
    ]

    /// All settings, in the order of the documentation.
    package static let all: [SettingDescriptor] = {
        let placed = settings.map { (place: place(of: $0.key), setting: $0) }
        return order.indices.flatMap { place in placed.filter { $0.place == place }.map { $0.setting } }
    }()

    /// Returns the index of the longest entry in ``order`` that fits a key.
    private static func place(of key: String) -> Int? {
        order.indices.filter { fits(key, order[$0]) }.max { order[$0].utf8.count < order[$1].utf8.count }
    }

    private static func fits(_ key: String, _ entry: String) -> Bool {
        entry.hasSuffix("*") ? key.hasPrefix(entry.dropLast()) : key == entry
    }

    /// - Throws: for invalid values and combinations.
    package init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        try read(values)
        // Both pages need a WebSocket.
        if !webSocket.isEnabled { pages.served.subtract([.chat, .room]) }
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
