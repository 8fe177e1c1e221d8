// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The trace of a message, as `hermes trace` and the console show it.
package struct ControlTrace: Codable, Sendable, Hashable {
    package var id: String
    package var clientID: String?
    /// The number of the account that sent the message; nil if a back end sent it.
    package var sender: Int32?
    package var senderDevice: String?
    /// `direct/<number>-<number>` or `group/<number>`; nil if this is a push.
    package var conversation: String?
    /// The number of inboxes that got the message.
    package var recipients: Int
    /// The steps in the order of their times.
    package var steps: [ControlTraceStep]
}

/// A step of a message.
package struct ControlTraceStep: Codable, Sendable, Hashable {
    /// accepted, committed, refused, delivered, acknowledged or pushed.
    package var step: String
    /// In milliseconds since 1970.
    package var time: Int64
    /// The time since the message was accepted.
    package var afterMicroseconds: Int64
    package var user: Int32?
    package var device: String?
    package var detail: String
}

/// The figures of a server as `hermes stats` shows them.
package struct ControlStats: Codable, Sendable, Hashable {
    package var version: String
    /// In milliseconds since 1970.
    package var time: Int64
    package var uptimeSeconds: Int64
    /// The number of connected devices.
    package var online: Int
    package var listeners: [ControlListener]
    package var figures: [ControlFigure]
}

/// An open listener.
package struct ControlListener: Codable, Sendable, Hashable {
    package var name: String
    package var host: String
    package var port: Int
}

/// The reports of clients about deliveries, for one version of the app in one kind of network.
package struct ControlDeliveries: Codable, Sendable, Hashable {
    /// The version of the app; empty if it is unknown. The network is also empty if it is unknown.
    package var appVersion: String
    package var network: String
    /// The counts by the names of ``ReportFigure``.
    package var counts: [String: UInt64]
}

/// A figure: its newest value, and its mean and maximum over the requested period; nil stands for an unknown value.
package struct ControlFigure: Codable, Sendable, Hashable {
    package var name: String
    package var now: Double?
    package var mean: Double?
    package var maximum: Double?
}
