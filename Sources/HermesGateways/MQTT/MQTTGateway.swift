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
    let metrics = MQTTMetrics()
    /// Of the environment, what is looked at for each message.
    let access: TopicAccess
    let durable: DurableSessions

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        settings = environment.settings.broker
        access = environment.access
        durable = environment.messenger.durable
        environment.brokerStatistics.start()
    }

    /// Between connections and their keep alive; a client that asked for none is still cut off if it takes nothing.
    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { settings.maxPacketBytes }

    package func makeSession(for connection: Connection) -> MQTTSession {
        MQTTSession(connection: connection, gateway: self)
    }
}
