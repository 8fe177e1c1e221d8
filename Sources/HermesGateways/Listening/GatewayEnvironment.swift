// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import Logging

/// What all gateways of a server share.
package final class GatewayEnvironment: Sendable {
    package let messenger: Messenger
    package let loops: LoopContexts
    package let settings: GatewaySettings
    /// Counts the connections of all listeners together.
    package let counter: ConnectionCounter
    package let logger: Logger
    /// Told to clients, for their logs: name and version.
    package let serverVersion: String

    package init(
        messenger: Messenger,
        loops: LoopContexts,
        settings: GatewaySettings = GatewaySettings(),
        logger: Logger,
        serverVersion: String = "hermes"
    ) {
        self.messenger = messenger
        self.loops = loops
        self.settings = settings
        let limits = settings.limits
        counter = ConnectionCounter(total: limits.connections, perAddress: limits.connectionsPerAddress)
        self.logger = logger
        self.serverVersion = serverVersion
    }
}
