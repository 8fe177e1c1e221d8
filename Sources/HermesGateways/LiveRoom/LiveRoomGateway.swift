// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The gateway for chat rooms of live streams: everybody in a room gets each text, and nothing is stored.
package struct LiveRoomGateway: Gateway {
    package static let name = "liveroom"
    package static let title = "LiveRoom"
    package static let purpose = "rooms of live streams"
    package static let defaultPort = 9898
    package static let listenerFeatures: ListenerSettings.Features = [.gateway, .anonymous]
    package typealias Options = LiveRoomSettings

    let environment: GatewayEnvironment
    private let settings: LiveRoomSettings
    let rules: LiveRoomRules
    let metrics = LiveRoomMetrics()

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        settings = environment.settings.room
        rules = LiveRoomRules(settings)
    }

    /// The time without a heartbeat after which a viewer is removed. In LiveRoom, other frames do not count as signs of
    /// life.
    package var idleTimeout: Duration { settings.silence }
    package var maxFrameBytes: Int { settings.maxBodyBytes }

    package func makeConnection(for connection: Connection) -> LiveRoomViewer {
        LiveRoomViewer(connection: connection, gateway: self)
    }
}
