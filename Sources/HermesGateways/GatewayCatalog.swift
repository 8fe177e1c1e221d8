// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// All wire protocols, one line each, and their parts that all protocols use.
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

    /// The protocols whose clients are reached through topics.
    static let applicationTopics: [any ApplicationTopicForm.Type] = [QSIOPApplication.self, IMPBApplication.self]
}
