// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Live-stream chat rooms: everybody in the room gets each text, and nothing is stored.
package struct LiveRoomGateway: Gateway {
    package static let name = "liveroom"
    package static let defaultPort = 9898

    let environment: GatewayEnvironment
    let rules: LiveRoomRules
    let metrics = LiveRoomMetrics()

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        rules = LiveRoomRules(environment.settings.room)
    }

    /// The silence after which a viewer is removed; only heartbeats count as life here.
    package var idleTimeout: Duration { environment.settings.room.silence }
    package var maxFrameBytes: Int { environment.settings.room.maxBodyBytes }

    package func makeConnection(for connection: Connection) -> LiveRoomViewer {
        LiveRoomViewer(connection: connection, gateway: self)
    }
}
