// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesWire

/// The native protocol: `hermes.v1.Packet` in frames with a varint length.
package struct DelimitedGateway: Gateway {
    package static let name = "delimited"
    package static let defaultPort = 9000

    let environment: GatewayEnvironment

    package init(environment: GatewayEnvironment) { self.environment = environment }

    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { environment.settings.limits.maxFrameBytes }

    package func makeSession(for connection: Connection) -> DelimitedSession {
        DelimitedSession(connection: connection, environment: environment)
    }
}

/// One connection of the native protocol.
package final class DelimitedSession: GatewaySession {
    package typealias Decoder = DelimitedFrameDecoder

    let connection: Connection
    let environment: GatewayEnvironment

    init(connection: Connection, environment: GatewayEnvironment) {
        self.connection = connection
        self.environment = environment
    }

    package func received(_ frame: DelimitedFrame) {
        guard let packet = try? frame.packet() else { return connection.end(.finished) }
        if case .ping(let ping) = packet.body {
            var answer = Hermes_V1_Packet()
            answer.id = packet.id
            answer.pong.clientTimeMs = ping.clientTimeMs
            answer.pong.serverTimeMs = environment.messenger.time.now().rawValue
            connection.write { try DelimitedFrame.write(answer, into: &$0) }
        }
    }
}
