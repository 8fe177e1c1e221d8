// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// What is known of a client's CONNECT until CONNACK.
struct MQTTConnectAttempt: Sendable {
    let connect: MQTTConnect
    /// The stamp of the login's beginning (``DurableSessions/loginBegins()``); nil for an anonymous client, which did
    /// not log in.
    let loginStamp: UInt64?

    /// Whether the server assigns the client identifier, because CONNECT has none.
    var isIDAssigned: Bool { connect.clientID.isEmpty }
}
