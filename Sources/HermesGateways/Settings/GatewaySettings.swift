// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The configuration of the gateways.
package struct GatewaySettings: Sendable, Hashable {
    package var impb: ListenerSettings
    package var liveroom: ListenerSettings
    package var qsiop: ListenerSettings
    package var delimited: ListenerSettings
    package var mqtt: ListenerSettings
    /// MQTT over TLS on a port of its own.
    package var mqtts: ListenerSettings
    /// Further named listeners.
    package var further: [FurtherListener] = []
    /// MQTT on a Unix socket; nil: there is none.
    package var mqttUnixSocketPath: String?
    package var stun: STUNSettings
    package var limits: ConnectionLimits
    package var access: AccessSettings
    package var room: LiveRoomSettings
    package var device: QSIOPSettings
    package var broker: MQTTSettings
    package var clients: ClientSettings

    package init(
        impb: ListenerSettings = .init(port: 6969),
        liveroom: ListenerSettings = .init(port: 9898),
        qsiop: ListenerSettings = .init(port: 7979),
        delimited: ListenerSettings = .init(port: 9000),
        mqtt: ListenerSettings = .init(port: 1883),
        mqtts: ListenerSettings = .init(isEnabled: false, port: 8883),
        mqttUnixSocketPath: String? = nil,
        stun: STUNSettings = .init(),
        limits: ConnectionLimits = .init(),
        access: AccessSettings = .init(),
        room: LiveRoomSettings = .init(),
        device: QSIOPSettings = .init(),
        broker: MQTTSettings = .init(),
        clients: ClientSettings = .init()
    ) {
        self.impb = impb
        self.liveroom = liveroom
        self.qsiop = qsiop
        self.delimited = delimited
        self.mqtt = mqtt
        self.mqtts = mqtts
        self.mqttUnixSocketPath = mqttUnixSocketPath
        self.stun = stun
        self.limits = limits
        self.access = access
        self.room = room
        self.device = device
        self.broker = broker
        self.clients = clients
    }

    /// Whether MQTT clients may connect without an account.
    package var isAnonymousAllowed: Bool { access.isAnonymousAllowed }

    /// All listeners, with their names in the configuration and the ``Gateway/name`` of their protocols.
    package var listeners: [(name: String, gateway: String, settings: ListenerSettings)] {
        var listeners = [
            ("impb", "impb", impb), ("liveroom", "liveroom", liveroom), ("qsiop", "qsiop", qsiop),
            ("delimited", "delimited", delimited), ("mqtt", "mqtt", mqtt), ("mqtts", "mqtt", mqtts),
        ]
        if let path = mqttUnixSocketPath {
            listeners.append(("mqtt.unixSocket", "mqtt", ListenerSettings(port: 0, unixSocketPath: path)))
        }
        listeners += further.map { ($0.name, $0.gateway.rawValue, $0.settings) }
        return listeners
    }
}

extension GatewaySettings {
    private static let impbKeys = keys("impb", "IMPB", port: 6969)
    private static let liveroomKeys = keys("liveroom", "LiveRoom", port: 9898, features: [.gateway, .anonymous])
    private static let qsiopKeys = keys("qsiop", "QSIOP", port: 7979, features: [.gateway, .anonymous])
    private static let delimitedKeys = keys("delimited", "Delimited", port: 9000)
    private static let mqttKeys = keys(
        "mqtt",
        "MQTT",
        port: 1883,
        features: [.gateway, .certificateIdentity, .anonymous]
    )
    private static let mqttsKeys = keys(
        "mqtts",
        "MQTT over TLS",
        port: 8883,
        features: [.gateway, .certificateIdentity, .tlsOnly, .anonymous]
    )
    private static let mqttUnixSocket = Setting.path(
        "listeners.mqtt.unixSocket",
        default: "",
        isEmptyAllowed: true,
        "The path of a Unix socket that also serves MQTT, for programs of this user and group; empty: none."
    )

    private static func keys(
        _ name: String,
        _ title: String,
        port: Int,
        features: ListenerSettings.Features = .gateway
    ) -> ListenerSettings.Keys {
        ListenerSettings.Keys(name, title: title, port: port, isEnabled: true, features: features)
    }

    /// All settings of the gateways.
    package static let settings: [SettingDescriptor] =
        impbKeys.all + liveroomKeys.all + qsiopKeys.all + delimitedKeys.all
        + mqttKeys.all + [mqttUnixSocket.descriptor] + mqttsKeys.all
        + STUNSettings.settings
        + ConnectionLimits.settings + AccessSettings.settings
        + LiveRoomSettings.settings + QSIOPSettings.settings + MQTTSettings.settings
        + ClientSettings.settings

    /// - Throws: also for combinations: half a TLS configuration, anonymous access on a public address.
    package init(_ values: SettingValues) throws(SettingsError) {
        let access = try AccessSettings(values)
        let unixSocket = try values.value(of: Self.mqttUnixSocket)
        self.init(
            impb: try ListenerSettings(values, Self.impbKeys),
            liveroom: try ListenerSettings(values, Self.liveroomKeys),
            qsiop: try ListenerSettings(values, Self.qsiopKeys),
            delimited: try ListenerSettings(values, Self.delimitedKeys),
            mqtt: try ListenerSettings(values, Self.mqttKeys),
            mqtts: try ListenerSettings(values, Self.mqttsKeys),
            mqttUnixSocketPath: unixSocket.isEmpty ? nil : unixSocket,
            stun: try STUNSettings(values),
            limits: try ConnectionLimits(values),
            access: access,
            room: try LiveRoomSettings(values, isAnonymousAllowed: access.isAnonymousAllowed),
            device: try QSIOPSettings(values, isAnonymousAllowed: access.isAnonymousAllowed),
            broker: try MQTTSettings(values),
            clients: try ClientSettings(values)
        )
        further = try FurtherListener.all(in: values)
        // sockaddr_un has room for this many bytes on every system.
        guard unixSocket.utf8.count <= 103 else {
            throw SettingsError(problems: [
                "listeners.mqtt.unixSocket = \"\(unixSocket)\" is too long for a socket: at most 103 bytes"
            ])
        }
        try refuseAnonymousOnPublic()
    }

    private func refuseAnonymousOnPublic() throws(SettingsError) {
        guard access.isAnonymousAllowed, !access.isAnonymousAllowedOnPublic else { return }
        for (name, gateway, listener) in listeners
        where ["liveroom", "qsiop", "mqtt"].contains(gateway) && listener.isEnabled && !listener.isLoopback {
            guard listener.isAnonymousAllowed else { continue }
            if gateway == "qsiop", device.isTokenRequired { continue }
            if let tls = listener.tls, tls.isIdentityFromCertificate, tls.clientCertificates == .required { continue }
            throw SettingsError(problems: [
                "listeners.\(name).host = \"\(listener.host)\" can be reached by other machines while access.anonymous "
                    + "is true; set access.anonymous: false, or access.anonymousOnPublic: true if that is what you want"
            ])
        }
    }
}
