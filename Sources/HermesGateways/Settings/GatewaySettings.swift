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
