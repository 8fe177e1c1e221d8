// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesWire
package import NIOCore

/// The MQTT broker: versions 3.1.1 and 5.0.
package final class MQTTGateway: Gateway {
    package static let name = "mqtt"
    package static let title = "MQTT"
    package static let purpose = "MQTT 3.1.1 and 5.0"
    package static let defaultPort = 1883
    package static let listenerFeatures: ListenerSettings.Features = [.gateway, .certificateIdentity, .anonymous]
    package typealias Options = MQTTSettings

    /// The listeners: `mqtt` without TLS, which may also be a Unix socket, and `mqtts` over TLS.
    package static var listeners: [ListenerSettings.Keys] {
        func keys(
            _ name: String,
            _ title: String,
            port: Int,
            _ more: ListenerSettings.Features
        ) -> ListenerSettings.Keys {
            let features = listenerFeatures.union(more)
            return ListenerSettings.Keys(name, title: title, port: port, features: features)
        }
        return [
            keys("mqtt", "MQTT", port: defaultPort, .unixSocket), keys("mqtts", "MQTT over TLS", port: 8883, .tlsOnly),
        ]
    }

    package static let webSocketSubprotocol: String? = "mqtt"

    /// Sends one packet per WebSocket message. More packets are allowed [MQTT-6.0.0-2], but some clients expect only
    /// one.
    package static func webSocketMessage(_ written: ByteBuffer) -> WebSocketMessage {
        WebSocketMessage(bytes: MQTTFrame.encodedBytes(atStartOf: written) ?? written.readableBytes)
    }

    let environment: GatewayEnvironment
    let settings: MQTTSettings
    /// The highest QoS in both directions.
    let maximumQoS: QoS
    let metrics = MQTTMetrics()
    /// The topic rules, kept here because each message needs them.
    let access: TopicAccess
    let durable: DurableSessions
    let sharedQuota: MQTTSharedQuota

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        settings = environment.settings.broker
        maximumQoS = QoS(rawValue: UInt8(clamping: settings.maximumQoS)) ?? .exactlyOnce
        access = environment.access
        durable = environment.messenger.durable
        sharedQuota = MQTTSharedQuota(settings.sharedGroups)
        environment.brokerStatistics.start()
    }

    /// The idle time until CONNECT sets the keep alive. A client without keep alive is still disconnected if it does
    /// not read its output.
    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { settings.maxPacketBytes }

    /// Refuses a QoS or a retained message that the settings do not allow. The connection is then closed. CONNACK has
    /// already told 5.0 clients the limits. 3.1.1 has no means to refuse a message, and an acknowledgement would be a
    /// false promise.
    ///
    /// - Parameter subject: the subject of the error message.
    func check(_ qos: MQTTQoS, isRetained: Bool, of subject: String) throws(MQTTPacketError) {
        guard qos.rawValue <= maximumQoS.rawValue else {
            throw MQTTPacketError(
                .qosNotSupported,
                "\(subject) has a QoS above \(maximumQoS.rawValue) [MQTT-3.2.2-11] [MQTT-3.2.2-12]"
            )
        }
        guard !isRetained || settings.isRetainAvailable else {
            throw MQTTPacketError(
                .retainNotSupported,
                "\(subject) has RETAIN set, but retained messages are off here [MQTT-3.2.2-13] [MQTT-3.2.2-14]"
            )
        }
    }

    package func makeConnection(for connection: Connection) -> MQTTConnection {
        MQTTConnection(connection: connection, gateway: self)
    }
}
