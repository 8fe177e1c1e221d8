// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A conversation as `hermes user conversations` shows it.
package struct ControlConversation: Codable, Sendable, Hashable {
    /// `user:<number>` or `group:<number>`.
    package var place: String
    /// The name of the other account or of the group; empty if the account is deleted.
    package var name: String
    /// The sequence number of the last message; 0 if there is none.
    package var lastSeq: UInt64
    /// The time of the last message in milliseconds since 1970; nil if it is unknown.
    package var lastAt: Int64?
    package var readUpTo: UInt64
    package var unread: UInt64
}

/// A connected MQTT client as `hermes clients` shows it.
package struct ControlMQTTClient: Codable, Sendable, Hashable {
    package var number: UInt64
    package var clientID: String
    /// The client's account or token; empty if the client is anonymous.
    package var owner: String
    package var version: String
    package var listener: String
    /// The client's address; empty if it is unknown.
    package var address: String
    /// The time when the client connected, in milliseconds since 1970.
    package var since: Int64
    package var subscriptions: Int
    package var queued: Int
    package var inflight: Int
    package var heldBytes: Int
    package var isKept: Bool
}

/// Figures over time as `hermes figures` shows them.
package struct ControlHistory: Codable, Sendable, Hashable {
    /// The time from one value to the next, in milliseconds.
    package var interval: Int64 = 0
    /// The time of the first value, in milliseconds since 1970.
    package var from: Int64 = 0
    package var figures: [ControlFigureValues] = []
}

/// The values of one figure over time; nil stands for an unknown value.
package struct ControlFigureValues: Codable, Sendable, Hashable {
    package var name: String
    /// The values of the figure. For a month, they are the means of the intervals.
    package var values: [Double?]
    /// The largest values of the intervals; only for a month.
    package var maxima: [Double?]?
}
