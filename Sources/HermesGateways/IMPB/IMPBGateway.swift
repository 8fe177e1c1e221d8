// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The gateway for IMPB, the protocol of the published mobile app: accounts, 1:1 messages, notifications, peer-to-peer
/// set-up.
package struct IMPBGateway: Gateway {
    package static let name = "impb"
    package static let title = "IMPB"
    package static let purpose = "IMPB, a mobile messenger's protocol"
    package static let defaultPort = 6969
    package static let applicationTopics: (any ApplicationTopicForm.Type)? = IMPBApplication.self

    let environment: GatewayEnvironment

    package init(environment: GatewayEnvironment) { self.environment = environment }

    /// The time without a sign of life after which a connection is closed. The default leaves time for three pings, one
    /// every 180 s.
    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { min(environment.settings.limits.maxFrameBytes, IMPBFrame.maxBodyBytes) }

    package func makeConnection(for connection: Connection) -> IMPBConnection {
        IMPBConnection(connection: connection, environment: environment)
    }
}
