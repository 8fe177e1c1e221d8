// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The rules of the MQTT broker.
package struct MQTTSettings: Sendable, Hashable {
    /// The longest accepted packet, told to clients of 5.0 as Maximum Packet Size.
    package var maxPacketBytes: Int
    /// The number of unacknowledged QoS 1 and 2 publications from a client, told to clients of 5.0 as Receive Maximum.
    package var receiveMaximum: Int
    /// The number of unacknowledged QoS 1 and 2 publications to a client, if its own Receive Maximum is not lower.
    package var maxInflight: Int
    /// The number of topic aliases of a client, told to clients of 5.0; 0: none.
    package var topicAliasMaximum: UInt16
    package var maxSubscriptionsPerSession: Int
    /// The most bytes of all filters of one session.
    package var maxSubscriptionBytesPerSession: Int
    /// The longest time that a session outlives its connection, in 3.1.1 too.
    package var maxSessionExpiry: Duration
    /// The number of publications that wait for an absent session.
    package var maxQueuedMessages: Int
    /// Their bytes.
    package var maxQueuedBytes: Int
    /// The absence of a kept session after which other members of a shared subscription get its never-sent messages;
    /// zero: never.
    package var sharedRedistribution: Duration
    /// The longest keep alive in seconds; a longer one, or none, is replaced. 0: no limit.
    package var maxKeepAlive: UInt16
    /// The longest client identifier, in bytes.
    package var maxClientIDBytes: Int
    /// The longest will with its topic and properties, in bytes. The default takes every will without properties.
    package var maxWillBytes = 128 << 10
    /// The highest QoS of publications, both ways: 0 … 2; told to clients of 5.0 if it is not 2.
    package var maximumQoS: Int
    /// Whether publications can be retained; told to clients of 5.0 if not.
    package var isRetainAvailable: Bool
    package var retainedMessages = SharedLimit(1_000_000, perAccount: 250_000, perAddress: 100_000)
    /// The most bytes of all retained publications.
    package var retainedBytes = SharedLimit(1 << 30, perAccount: 256 << 20, perAddress: 128 << 20)
    /// The most groups of shared subscriptions that clients are in; each group counts once for each owner.
    package var sharedGroups = SharedLimit(100_000, perAccount: 500, perAddress: 256)
    /// The most kept sessions. A publication may be stored for each of them before it is acknowledged, for some 20 µs
    /// each, and whoever publishes waits for that.
    package var keptSessions = SharedLimit(1_000_000, perAccount: 1_000, perAddress: 1_000)
    /// The most subscriptions of all kept sessions; a long filter counts for several.
    package var keptSubscriptions = SharedLimit(4_000_000, perAccount: 400_000, perAddress: 100_000)
    /// The most publications that wait for all kept sessions.
    package var keptMessages = SharedLimit(100_000_000, perAccount: 10_000_000, perAddress: 1_000_000)
    /// The most bytes that wait for all kept sessions.
    package var keptBytes = SharedLimit(16 << 30, perAccount: 4 << 30, perAddress: 512 << 20)
    /// The time between two publications of `$SYS/…`; zero: none.
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
        self.sysInterval = sysInterval
    }

    /// The session expiry granted for a request of this number of seconds; 0xFFFFFFFF: forever.
    package func sessionExpiry(_ seconds: UInt32) -> Duration {
        min(seconds == .max ? maxSessionExpiry : .seconds(Int64(seconds)), maxSessionExpiry)
    }
}
