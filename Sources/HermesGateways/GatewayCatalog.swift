// Hermes
// SPDX-License-Identifier: Apache-2.0

/// All wire protocols, one line each.
package enum GatewayCatalog {
    package static let all: [any Gateway.Type] = [
        IMPBGateway.self,
        LiveRoomGateway.self,
        QSIOPGateway.self,
        DelimitedGateway.self,
        MQTTGateway.self,
    ]
}
