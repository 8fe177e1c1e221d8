// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// All wire protocols, and the parts of them that other protocols also use. The server makes the listeners, their
/// settings and the page at `/` from this catalog.
package enum GatewayCatalog {
    package static let all: [any Gateway.Type] = [
        IMPBGateway.self,
        LiveRoomGateway.self,
        QSIOPGateway.self,
        DelimitedGateway.self,
        MQTTGateway.self,
    ]

    /// The translation between room events and the payloads of publications to a room's topic.
    package static let roomPayloads: any RoomPayloads = LiveRoomPayloads()

    /// The protocols' rules for the topics through which their clients are reached.
    static let applicationTopics: [any ApplicationTopicForm.Type] = all.compactMap { $0.applicationTopics }

    /// Returns the protocol with this name; nil if there is none.
    package static func gateway(named name: String) -> (any Gateway.Type)? { all.first { $0.name == name } }
}
