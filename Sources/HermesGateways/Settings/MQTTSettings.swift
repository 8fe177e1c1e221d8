// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How the MQTT broker behaves.
package struct MQTTSettings: Sendable, Hashable {
    /// The largest packet, in bytes.
    package var maxPacketBytes: Int
    /// QoS 1 and 2 messages of one client that may be unacknowledged by the server.
    package var receiveMaximum: Int
    /// QoS 1 and 2 messages to one client that may be unacknowledged by it, if it does not want fewer.
    package var maxInflight: Int
    /// Topic aliases in each direction.
    package var topicAliasMaximum: UInt16
    package var maxSubscriptionsPerSession: Int
    /// The longest a session outlives its connection; that of 3.1.1's durable sessions.
    package var maxSessionExpiry: Duration
    /// Messages that wait for one session.
    package var maxQueuedMessages: Int
    /// Their bytes.
    package var maxQueuedBytes: Int
    /// The longest keep alive that is granted, in seconds; 0: any, or none.
    package var maxKeepAlive: UInt16
    /// The longest client identifier, in bytes.
    package var maxClientIDBytes: Int

    package init(
        maxPacketBytes: Int = 1_048_576,
        receiveMaximum: Int = 1_024,
        maxInflight: Int = 1_024,
        topicAliasMaximum: UInt16 = 32,
        maxSubscriptionsPerSession: Int = 10_000,
        maxSessionExpiry: Duration = .seconds(7 * 24 * 3_600),
        maxQueuedMessages: Int = 100_000,
        maxQueuedBytes: Int = 64 << 20,
        maxKeepAlive: UInt16 = 0,
        maxClientIDBytes: Int = 1_024
    ) {
        self.maxPacketBytes = maxPacketBytes
        self.receiveMaximum = receiveMaximum
        self.maxInflight = maxInflight
        self.topicAliasMaximum = topicAliasMaximum
        self.maxSubscriptionsPerSession = maxSubscriptionsPerSession
        self.maxSessionExpiry = maxSessionExpiry
        self.maxQueuedMessages = maxQueuedMessages
        self.maxQueuedBytes = maxQueuedBytes
        self.maxKeepAlive = maxKeepAlive
        self.maxClientIDBytes = maxClientIDBytes
    }

    /// What a client gets that asked for a session of so many seconds; 0xFFFFFFFF: for ever.
    package func sessionExpiry(_ seconds: UInt32) -> Duration {
        min(seconds == .max ? maxSessionExpiry : .seconds(Int64(seconds)), maxSessionExpiry)
    }
}
