// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A conversation as `hermes user conversations` shows it.
package struct ControlConversation: Codable, Sendable, Hashable {
    /// `user:<number>` or `group:<number>`.
    package var place: String
    /// Empty: the account is deleted.
    package var name: String
    /// 0: there is no message.
    package var lastSeq: UInt64
    /// Milliseconds since 1970; nil: unknown.
    package var lastAt: Int64?
    package var readUpTo: UInt64
    package var unread: UInt64
}

/// A connected MQTT client as `hermes clients` shows it.
package struct ControlMQTTClient: Codable, Sendable, Hashable {
    package var number: UInt64
    package var clientID: String
    /// Empty: anonymous.
    package var owner: String
    package var version: String
    package var listener: String
    /// Empty: unknown.
    package var address: String
    /// Milliseconds since 1970.
    package var since: Int64
    package var subscriptions: Int
    package var queued: Int
    package var inflight: Int
    package var heldBytes: Int
    package var isKept: Bool
}

/// Figures over time as `hermes figures` shows them.
package struct ControlHistory: Codable, Sendable, Hashable {
    /// From one value to the next, in milliseconds.
    package var interval: Int64 = 0
    /// The time of the first value, in milliseconds since 1970.
    package var from: Int64 = 0
    package var figures: [ControlFigureValues] = []
}

/// One figure over time; nil: unknown.
package struct ControlFigureValues: Codable, Sendable, Hashable {
    package var name: String
    /// For a month: the means of the intervals.
    package var values: [Double?]
    /// Only of a month.
    package var maxima: [Double?]?
}
