// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A connection as operators see it. It is confined to its loop.
package protocol OperatedClient: AnyObject {
    /// The number of the connection. It is unique in the lifetime of the server process, and the numbers ascend on
    /// each loop.
    var number: UInt64 { get }
    var clientID: String { get }
    /// The name of the account, or of the token's owner; empty if the client is anonymous.
    var owner: String { get }

    func listing() -> ClientListing

    /// Ends the connection, and notifies the client that an operator ended it.
    func disconnect()
}

/// A connected MQTT client, as operators see it.
package struct ClientListing: Sendable, Hashable {
    /// The longest part of a client id or name that is shown or searched, in bytes.
    static let maxShownBytes = 256

    package var number: UInt64
    package var clientID: String
    package var owner: String
    /// "MQTT 3.1.1" or "MQTT 5.0".
    package var version: String
    /// The listener's name.
    package var listener: String
    /// The client's address; empty if it is unknown.
    package var address: String
    /// The age of the connection.
    package var age: Duration
    package var subscriptions: Int
    /// The number of messages that wait to be sent.
    package var queued: Int
    /// The number of messages that were sent but are not acknowledged yet.
    package var inflight: Int
    /// The memory that the connection holds, in bytes.
    package var heldBytes: Int
    /// Whether the session outlives the connection.
    package var isKept: Bool

    static func shown(_ text: String) -> String {
        guard text.utf8.count > maxShownBytes else { return text }
        return String(decoding: text.utf8.prefix(maxShownBytes), as: UTF8.self) + "…"
    }
}
