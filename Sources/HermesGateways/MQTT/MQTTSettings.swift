// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of the MQTT broker.
package struct MQTTSettings: GatewayOptions {
    /// The longest accepted packet, in bytes. It is announced to 5.0 clients as Maximum Packet Size.
    package var maxPacketBytes = 1 << 20
    /// The largest number of unacknowledged QoS 1 and 2 publications from a client. It is announced to 5.0 clients as
    /// Receive Maximum.
    package var receiveMaximum = 1024
    /// The largest number of unacknowledged QoS 1 and 2 publications to a client. The client's Receive Maximum may
    /// set a lower limit.
    package var maxInflight = 1024
    /// The number of topic aliases of a client; 0 for none. It is announced to 5.0 clients.
    package var topicAliasMaximum: UInt16 = 32
    package var maxSubscriptionsPerSession = 10_000
    /// The maximum total size of one session's filters, in bytes.
    package var maxSubscriptionBytesPerSession = 1 << 20
    /// The longest time for which a session outlives its connection. It also applies to 3.1.1.
    package var maxSessionExpiry: Duration = .seconds(7 * 86_400)
    /// The largest number of publications that wait for one session.
    package var maxQueuedMessages = 100_000
    /// The maximum total size of the publications that wait for one session, in bytes.
    package var maxQueuedBytes = 64 << 20
    /// The time without a connection after which a kept session's messages from a shared subscription go to other
    /// members, if these messages were never sent; zero for never.
    package var sharedRedistribution: Duration = .seconds(60)
    /// The longest keep alive in seconds; 0 for no limit. It also applies to a 5.0 client that requests a longer keep
    /// alive or none.
    package var maxKeepAlive: UInt16 = 0
    /// The longest client identifier, in bytes.
    package var maxClientIDBytes = 1_024
    /// The longest will with its topic and properties, in bytes. The default accepts every will without properties.
    package var maxWillBytes = 128 << 10
    /// The highest QoS of publications in both directions, 0 … 2. It is announced to 5.0 clients if it is not 2.
    package var maximumQoS = 2
    /// Whether publications can be retained. If they cannot, 5.0 clients are informed.
    package var isRetainAvailable = true
    package var retainedMessages = SharedLimit(400_000, perAccount: 100_000, perAddress: 50_000)
    /// The maximum total size of all retained publications, in bytes.
    package var retainedBytes = SharedLimit(256 << 20, perAccount: 64 << 20, perAddress: 32 << 20)
    /// The largest number of groups of shared subscriptions; a group counts once for each of its owners.
    package var sharedGroups = SharedLimit(100_000, perAccount: 500, perAddress: 256)
    /// The largest number of kept sessions, which outlive their connections. A publication may have to be stored for
    /// each of them before it is acknowledged. Storing takes about 20 µs for each session, and the publisher waits
    /// until the publication is stored for all sessions.
    package var keptSessions = SharedLimit(DurableSettings.usualSessions, perAccount: 1_000, perAddress: 1_000)
    /// The largest number of subscriptions of all kept sessions. A long filter counts as several subscriptions.
    package var keptSubscriptions = SharedLimit(250_000, perAccount: 60_000, perAddress: 25_000)
    /// The largest number of publications that wait in the queues of all kept sessions together.
    package var keptMessages = SharedLimit(100_000_000, perAccount: 10_000_000, perAddress: 1_000_000)
    /// The largest total size of the publications that wait in the queues of all kept sessions together, in bytes.
    package var keptBytes = SharedLimit(16 << 30, perAccount: 4 << 30, perAddress: 512 << 20)
    /// The time between two publications of `$SYS/…`; zero if nothing is published.
    package var sysInterval: Duration = .seconds(10)

    package init() {}

    /// Whether clients without a name are allowed. MQTT has no separate setting for that: `access.anonymous` decides.
    package var isAnonymousAllowed: Bool { true }

    package func requireAccount() {}

    /// Returns the session expiry that is granted to a client that asks for this number of seconds; 0xFFFFFFFF asks for
    /// no expiry.
    package func sessionExpiry(_ seconds: UInt32) -> Duration {
        min(seconds == .max ? maxSessionExpiry : .seconds(Int64(seconds)), maxSessionExpiry)
    }
}

extension GatewaySettings {
    package var broker: MQTTSettings {
        get { self[MQTTGateway.self] }
        set { self[MQTTGateway.self] = newValue }
    }
}

extension MQTTSettings {
    private var aliases: Int {
        get { Int(topicAliasMaximum) }
        set { topicAliasMaximum = UInt16(clamping: newValue) }
    }

    /// The value is rounded up, because a value below one second would otherwise become 0, which means no limit.
    private var keepAlive: Duration {
        get { .seconds(Int64(maxKeepAlive)) }
        set { maxKeepAlive = UInt16(clamping: Int64((newValue / .seconds(1)).rounded(.up))) }
    }

    package static let fields: [SettingField<Self>] = [
        .byteCount(
            \.maxPacketBytes,
            "mqtt.maxPacketBytes",
            in: 1024...(256 << 20),
            "The longest packet that the server accepts. If a packet is longer, the server closes the connection."
        ),
        .number(
            \.receiveMaximum,
            "mqtt.receiveMaximum",
            in: 1...65_535,
            "The largest number of unacknowledged QoS 1 and 2 publications from one client."
        ),
        .number(
            \.maxInflight,
            "mqtt.maxInflight",
            in: 1...65_534,
            "The largest number of unacknowledged QoS 1 and 2 publications that the server sends to one client. A "
                + "client can ask for fewer."
        ),
        .number(
            \.aliases,
            "mqtt.topicAliasMaximum",
            in: 0...65_535,
            "The largest number of topic aliases that an MQTT 5 client may use. With 0, it may use none."
        ),
        .number(
            \.maxSubscriptionsPerSession,
            "mqtt.maxSubscriptionsPerSession",
            in: 1...1_000_000,
            "The largest number of subscriptions of one session. Further subscriptions are refused."
        ),
        .byteCount(
            \.maxSubscriptionBytesPerSession,
            "mqtt.maxSubscriptionBytesPerSession",
            in: 65_536...(1 << 30),
            "The largest total size of the filters of one session. Further filters are refused."
        ),
        .duration(
            \.maxSessionExpiry,
            "mqtt.maxSessionExpiry",
            in: .seconds(0) ... .seconds(3650 * 86_400),
            "The longest time for which a session outlives its connection. This limit also applies to MQTT 3.1.1."
        ),
        .number(
            \.maxQueuedMessages,
            "mqtt.maxQueuedMessages",
            in: 1...100_000_000,
            "The largest number of publications that wait for one session. Further publications are dropped."
        ),
        .byteCount(
            \.maxQueuedBytes,
            "mqtt.maxQueuedBytes",
            in: 65_536...(1 << 40),
            "The largest total size of the publications that wait for one session. Further publications are dropped."
        ),
        .duration(
            \.sharedRedistribution,
            "mqtt.sharedRedistribution",
            in: .seconds(0) ... .seconds(3650 * 86_400),
            "How long the client of a kept session may be away before other members of a shared subscription get the "
                + "messages that were never sent to this client. With 0 s, the other members never get them."
        ),
        .duration(
            \.keepAlive,
            "mqtt.maxKeepAlive",
            in: .seconds(0) ... .seconds(65_535),
            "The longest keep alive of MQTT 5.0 clients. A client that asks for a longer keep alive, or for none, gets "
                + "this keep alive. 0 s means no limit."
        ),
        .byteCount(
            \.maxClientIDBytes,
            "mqtt.maxClientIDBytes",
            in: 23...65_535,
            "The longest client identifier. A client with a longer identifier is refused."
        ),
        .byteCount(
            \.maxWillBytes,
            "mqtt.maxWillBytes",
            in: 1024...(16 << 20),
            "The longest will, including its topic and properties. A client with a longer will is refused."
        ),
        .number(
            \.maximumQoS,
            "mqtt.maximumQoS",
            in: 0...2,
            "The highest QoS. Subscriptions get at most this QoS, and a client that publishes with a higher QoS is "
                + "disconnected."
        ),
        .duration(
            \.sysInterval,
            "mqtt.sysInterval",
            in: .seconds(0) ... .seconds(86_400),
            "The time between two publications of statistics to $SYS. With 0 s, the server publishes no statistics."
        ),
        .counted(
            \.keptSessions,
            "mqtt.sessions.max",
            "The largest number of kept sessions of all clients. A client that needs a further session is refused."
        ),
        .counted(
            \.keptSubscriptions,
            "mqtt.sessions.maxSubscriptions",
            "The largest number of subscriptions of all kept sessions. Further subscriptions are refused. A filter "
                + "takes 384 bytes, plus twice its length, plus 64 bytes for each level. Each KiB of this memory, or "
                + "part of a KiB, counts as one subscription. A shared filter counts as 39 more subscriptions."
        ),
        .counted(
            \.keptMessages,
            "mqtt.sessions.maxQueuedMessages",
            "The largest number of publications that wait in the queues of all kept sessions together. Further "
                + "publications are dropped."
        ),
        .measured(
            \.keptBytes,
            "mqtt.sessions.maxQueuedBytes",
            from: 65_536,
            "The largest total size of the publications that wait in the queues of all kept sessions together. Further "
                + "publications are dropped."
        ),
        .counted(
            \.sharedGroups,
            "mqtt.maxSharedGroups",
            "The largest number of groups of shared subscriptions with connected members. A group counts once for each "
                + "account or address that has members in it. The limits on members are 16 times the limits on groups. "
                + "Further groups and members are refused."
        ),
        .flag(
            \.isRetainAvailable,
            "mqtt.retained.enabled",
            "Whether publications can be retained. If false, a client that tries to retain a publication is "
                + "disconnected."
        ),
        .counted(
            \.retainedMessages,
            "mqtt.retained.maxMessages",
            from: 0,
            "The largest number of retained publications. A further publication over MQTT 5 with QoS 1 or 2 is "
                + "refused. Other further publications are delivered without being retained."
        ),
        .measured(
            \.retainedBytes,
            "mqtt.retained.maxBytes",
            from: 0,
            "The largest memory of all retained publications together. A publication takes its payload, topic and "
                + "properties, plus 352 bytes, plus 64 bytes for each level of the topic, plus 160 bytes if it expires."
        ),
    ]
}
