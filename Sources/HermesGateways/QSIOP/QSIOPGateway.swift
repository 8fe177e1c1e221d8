// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics

/// The gateway for small devices, which send requests and also get the pushes of their account.
package struct QSIOPGateway: Gateway {
    package static let name = "qsiop"
    package static let title = "QSIOP"
    package static let purpose = "small devices"
    package static let defaultPort = 7979
    package static let listenerFeatures: ListenerSettings.Features = [.gateway, .anonymous]
    package typealias Options = QSIOPSettings
    package static let applicationTopics: (any ApplicationTopicForm.Type)? = QSIOPApplication.self

    let environment: GatewayEnvironment
    let rules: QSIOPRules
    /// Publications that a device cannot get, although they were accepted: by an older version, or by a node with an
    /// older version.
    let refusedPayloads = GatewayMetrics.refusedPayloads()

    package init(environment: GatewayEnvironment) {
        self.environment = environment
        rules = QSIOPRules(requiresToken: environment.settings.device.isTokenRequired)
    }

    package var idleTimeout: Duration { environment.settings.limits.idle }
    package var maxFrameBytes: Int { 65_535 }

    package func makeConnection(for connection: Connection) -> QSIOPDevice {
        QSIOPDevice(connection: connection, gateway: self)
    }
}
