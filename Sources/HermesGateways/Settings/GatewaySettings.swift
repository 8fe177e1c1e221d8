// Hermes
// SPDX-License-Identifier: Apache-2.0

/// All that the gateways are told by the configuration.
package struct GatewaySettings: Sendable, Hashable {
    package var impb: ListenerSettings
    package var liveroom: ListenerSettings
    package var qsiop: ListenerSettings
    package var delimited: ListenerSettings
    package var mqtt: ListenerSettings
    package var stun: STUNSettings
    package var limits: ConnectionLimits
    package var room: LiveRoomSettings
    package var device: QSIOPSettings
    package var broker: MQTTSettings
    /// Whether MQTT clients need to be nobody.
    package var isAnonymousAllowed: Bool

    package init(
        impb: ListenerSettings = .init(port: 6969),
        liveroom: ListenerSettings = .init(port: 9898),
        qsiop: ListenerSettings = .init(port: 7979),
        delimited: ListenerSettings = .init(port: 9000),
        mqtt: ListenerSettings = .init(port: 1883),
        stun: STUNSettings = .init(),
        limits: ConnectionLimits = .init(),
        room: LiveRoomSettings = .init(),
        device: QSIOPSettings = .init(),
        broker: MQTTSettings = .init(),
        isAnonymousAllowed: Bool = true
    ) {
        self.impb = impb
        self.liveroom = liveroom
        self.qsiop = qsiop
        self.delimited = delimited
        self.mqtt = mqtt
        self.stun = stun
        self.limits = limits
        self.room = room
        self.device = device
        self.broker = broker
        self.isAnonymousAllowed = isAnonymousAllowed
    }

    /// Every listener with its name in the configuration.
    package var listeners: [(name: String, settings: ListenerSettings)] {
        [("impb", impb), ("liveroom", liveroom), ("qsiop", qsiop), ("delimited", delimited), ("mqtt", mqtt)]
    }
}
