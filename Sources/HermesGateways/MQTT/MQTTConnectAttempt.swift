// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The data about a client's CONNECT that are kept until CONNACK.
struct MQTTConnectAttempt: Sendable {
    let connect: MQTTConnect
    /// The stamp of the login's beginning (``DurableSessions/loginBegins()``); nil for an anonymous client, which did
    /// not log in.
    let loginStamp: UInt64?
    /// The properties of the CONNACK that accepts the client; set once the client has logged in.
    var granted = MQTTProperties()

    /// Whether the server assigns the client identifier, because CONNECT has none.
    var isIDAssigned: Bool { connect.clientID.isEmpty }
}
