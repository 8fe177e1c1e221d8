// Hermes
// SPDX-License-Identifier: Apache-2.0

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
