// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// All wire protocols, one line each, and those of their parts that other protocols use, too. The listeners, their
/// settings and the page at `/` are made from this catalog.
package enum GatewayCatalog {
    package static let all: [any Gateway.Type] = [
        IMPBGateway.self,
        LiveRoomGateway.self,
        QSIOPGateway.self,
        DelimitedGateway.self,
        MQTTGateway.self,
    ]

    /// The form of room events as payloads of their topics.
    package static let roomPayloads: any RoomPayloads = LiveRoomPayloads()

    /// The topics through which clients are reached.
    static let applicationTopics: [any ApplicationTopicForm.Type] = all.compactMap { $0.applicationTopics }

    /// The protocol with a name.
    package static func gateway(named name: String) -> (any Gateway.Type)? { all.first { $0.name == name } }
}
