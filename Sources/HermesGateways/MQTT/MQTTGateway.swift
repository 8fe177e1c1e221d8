// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
package import NIOCore

/// The MQTT broker: versions 3.1.1 and 5.0.
package final class MQTTGateway: Gateway {
    package static let name = "mqtt"
    package static let defaultPort = 1883
    package static let webSocketSubprotocol: String? = "mqtt"

    /// One packet. More are allowed [MQTT-6.0.0-2], but some clients do not look for a second one before more comes.
    package static func webSocketMessageBytes(_ written: ByteBuffer) -> Int {
        MQTTFrame.encodedBytes(atStartOf: written) ?? written.readableBytes
    }

    let environment: GatewayEnvironment
    let settings: MQTTSettings
    /// The highest QoS that is sent and taken.
    let maximumQoS: QoS
    let metrics = MQTTMetrics()
    /// Of the environment, what is looked at for each message.
    let access: TopicAccess
    let durable: DurableSessions

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        settings = environment.settings.broker
        maximumQoS = QoS(rawValue: UInt8(clamping: settings.maximumQoS)) ?? .exactlyOnce
        access = environment.access
        durable = environment.messenger.durable
        environment.brokerStatistics.start()
    }

    /// Between connections and their keep alive; a client that asked for none is still cut off if it takes nothing.
    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { settings.maxPacketBytes }

    /// Refuses what the settings do not offer. CONNACK tells clients of 5.0 of it; 3.1.1 has no word for it, so that its
    /// connection is closed, as for all that the server cannot do: an acknowledgement would promise it.
    ///
    /// - Parameter subject: what it is about, for the message.
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
                "\(subject) is to be retained, and nothing is here [MQTT-3.2.2-13] [MQTT-3.2.2-14]"
            )
        }
    }

    package func makeSession(for connection: Connection) -> MQTTSession {
        MQTTSession(connection: connection, gateway: self)
    }
}
