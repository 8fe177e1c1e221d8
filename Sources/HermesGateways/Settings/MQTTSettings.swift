// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How the MQTT broker behaves.
package struct MQTTSettings: Sendable, Hashable {
    /// The longest packet that is taken, told to clients of 5.0 as Maximum Packet Size.
    package var maxPacketBytes: Int
    /// Unacknowledged QoS 1 and 2 publications from a client, told to clients of 5.0 as Receive Maximum.
    package var receiveMaximum: Int
    /// Unacknowledged QoS 1 and 2 publications to a client; its own Receive Maximum lowers it.
    package var maxInflight: Int
    /// Aliases that a client may use, told to clients of 5.0; 0: none.
    package var topicAliasMaximum: UInt16
    package var maxSubscriptionsPerSession: Int
    /// What the filters of one session's subscriptions may take together, in bytes.
    package var maxSubscriptionBytesPerSession: Int
    /// The longest a session outlives its connection, those of 3.1.1 included.
    package var maxSessionExpiry: Duration
    /// Publications that wait for an absent session.
    package var maxQueuedMessages: Int
    /// What they may take, in bytes.
    package var maxQueuedBytes: Int
    /// How long a kept session may be away before others of a shared subscription get what was never sent to it; zero: they
    /// do not.
    package var sharedRedistribution: Duration
    /// The longest keep alive in seconds; a longer one, or none, is replaced. 0: no limit.
    package var maxKeepAlive: UInt16
    /// The longest client identifier, in bytes.
    package var maxClientIDBytes: Int
    /// The highest QoS of publications, both ways: 0 … 2; told to clients of 5.0 if it is not 2.
    package var maximumQoS: Int
    /// Whether there are retained publications; told to clients of 5.0 if not.
    package var isRetainAvailable: Bool
    package var maxRetainedMessages: Int
    /// What all retained publications may take, in bytes.
    package var maxRetainedBytes: Int
    /// Between two publications of `$SYS/…`; zero: there are none.
    package var sysInterval: Duration

    package init(
        maxPacketBytes: Int = 1 << 20,
        receiveMaximum: Int = 1024,
        maxInflight: Int = 1024,
        topicAliasMaximum: UInt16 = 32,
        maxSubscriptionsPerSession: Int = 10_000,
        maxSubscriptionBytesPerSession: Int = 1 << 20,
        maxSessionExpiry: Duration = .seconds(7 * 86_400),
        maxQueuedMessages: Int = 100_000,
        maxQueuedBytes: Int = 64 << 20,
        sharedRedistribution: Duration = .seconds(60),
        maxKeepAlive: UInt16 = 0,
        maxClientIDBytes: Int = 1_024,
        maximumQoS: Int = 2,
        isRetainAvailable: Bool = true,
        maxRetainedMessages: Int = 1_000_000,
        maxRetainedBytes: Int = 1 << 30,
        sysInterval: Duration = .seconds(10)
    ) {
        self.maxPacketBytes = maxPacketBytes
        self.receiveMaximum = receiveMaximum
        self.maxInflight = maxInflight
        self.topicAliasMaximum = topicAliasMaximum
        self.maxSubscriptionsPerSession = maxSubscriptionsPerSession
        self.maxSubscriptionBytesPerSession = maxSubscriptionBytesPerSession
        self.maxSessionExpiry = maxSessionExpiry
        self.maxQueuedMessages = maxQueuedMessages
        self.maxQueuedBytes = maxQueuedBytes
        self.sharedRedistribution = sharedRedistribution
        self.maxKeepAlive = maxKeepAlive
        self.maxClientIDBytes = maxClientIDBytes
        self.maximumQoS = maximumQoS
        self.isRetainAvailable = isRetainAvailable
        self.maxRetainedMessages = maxRetainedMessages
        self.maxRetainedBytes = maxRetainedBytes
        self.sysInterval = sysInterval
    }

    /// What a client gets that asked for a session of so many seconds; 0xFFFFFFFF: for ever.
    package func sessionExpiry(_ seconds: UInt32) -> Duration {
        min(seconds == .max ? maxSessionExpiry : .seconds(Int64(seconds)), maxSessionExpiry)
    }
}
