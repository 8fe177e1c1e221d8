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
    package var keptSessions = SharedLimit(250_000, perAccount: 1_000, perAddress: 1_000)
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
    private static let defaults = MQTTSettings()

    private static let packet = Setting.byteCount(
        "mqtt.maxPacketBytes",
        default: defaults.maxPacketBytes,
        in: 1024...(256 << 20),
        "The longest packet that the server accepts. If a packet is longer, the server closes the connection."
    )
    private static let receiveMaximum = Setting.number(
        "mqtt.receiveMaximum",
        default: defaults.receiveMaximum,
        in: 1...65_535,
        "The largest number of unacknowledged QoS 1 and 2 publications from one client."
    )
    private static let inflight = Setting.number(
        "mqtt.maxInflight",
        default: defaults.maxInflight,
        in: 1...65_534,
        "The largest number of unacknowledged QoS 1 and 2 publications that the server sends to one client. A client "
            + "can ask for fewer."
    )
    private static let aliases = Setting.number(
        "mqtt.topicAliasMaximum",
        default: Int(defaults.topicAliasMaximum),
        in: 0...65_535,
        "The largest number of topic aliases that an MQTT 5 client may use. With 0, it may use none."
    )
    private static let subscriptions = Setting.number(
        "mqtt.maxSubscriptionsPerSession",
        default: defaults.maxSubscriptionsPerSession,
        in: 1...1_000_000,
        "The largest number of subscriptions of one session. Further subscriptions are refused."
    )
    private static let subscriptionBytes = Setting.byteCount(
        "mqtt.maxSubscriptionBytesPerSession",
        default: defaults.maxSubscriptionBytesPerSession,
        in: 65_536...(1 << 30),
        "The largest total size of the filters of one session. Further filters are refused."
    )
    private static let expiry = Setting.duration(
        "mqtt.maxSessionExpiry",
        default: defaults.maxSessionExpiry,
        in: .seconds(0) ... .seconds(3650 * 86_400),
        "The longest time for which a session outlives its connection. This limit also applies to MQTT 3.1.1."
    )
    private static let queuedMessages = Setting.number(
        "mqtt.maxQueuedMessages",
        default: defaults.maxQueuedMessages,
        in: 1...100_000_000,
        "The largest number of publications that wait for one session. Further publications are dropped."
    )
    private static let queuedBytes = Setting.byteCount(
        "mqtt.maxQueuedBytes",
        default: defaults.maxQueuedBytes,
        in: 65_536...(1 << 40),
        "The largest total size of the publications that wait for one session. Further publications are dropped."
    )
    private static let sharedRedistribution = Setting.duration(
        "mqtt.sharedRedistribution",
        default: defaults.sharedRedistribution,
        in: .seconds(0) ... .seconds(3650 * 86_400),
        """
        How long the client of a kept session may be away before other members of a shared subscription get the \
        messages that were never sent to this client. With 0 s, the other members never get them.
        """
    )
    private static let keepAlive = Setting.duration(
        "mqtt.maxKeepAlive",
        default: .seconds(Int64(defaults.maxKeepAlive)),
        in: .seconds(0) ... .seconds(65_535),
        "The longest keep alive of MQTT 5.0 clients. A client that asks for a longer keep alive, or for none, gets "
            + "this keep alive. 0 s means no limit."
    )
    private static let clientID = Setting.byteCount(
        "mqtt.maxClientIDBytes",
        default: defaults.maxClientIDBytes,
        in: 23...65_535,
        "The longest client identifier. A client with a longer identifier is refused."
    )
    private static let will = Setting.byteCount(
        "mqtt.maxWillBytes",
        default: defaults.maxWillBytes,
        in: 1024...(16 << 20),
        "The longest will, including its topic and properties. A client with a longer will is refused."
    )
    private static let maximumQoS = Setting.number(
        "mqtt.maximumQoS",
        default: defaults.maximumQoS,
        in: 0...2,
        "The highest QoS. Subscriptions get at most this QoS, and a client that publishes with a higher QoS is "
            + "disconnected."
    )
    private static let retained = Setting.flag(
        "mqtt.retained.enabled",
        default: defaults.isRetainAvailable,
        "Whether publications can be retained. If false, a client that tries to retain a publication is disconnected."
    )
    private static let sysInterval = Setting.duration(
        "mqtt.sysInterval",
        default: defaults.sysInterval,
        in: .seconds(0) ... .seconds(86_400),
        "The time between two publications of statistics to $SYS. With 0 s, the server publishes no statistics."
    )

    private static let keptSessions = SharedLimitSetting.counted(
        "mqtt.sessions.max",
        defaults.keptSessions,
        "The largest number of kept sessions of all clients. A client that needs a further session is refused."
    )
    private static let keptSubscriptions = SharedLimitSetting.counted(
        "mqtt.sessions.maxSubscriptions",
        defaults.keptSubscriptions,
        "The largest number of subscriptions of all kept sessions. Further subscriptions are refused. A filter takes "
            + "384 bytes, plus twice its length, plus 64 bytes for each level. Each KiB of this memory, or part of a "
            + "KiB, counts as one subscription. A shared filter counts as 39 more subscriptions."
    )
    private static let keptMessages = SharedLimitSetting.counted(
        "mqtt.sessions.maxQueuedMessages",
        defaults.keptMessages,
        "The largest number of publications that wait in the queues of all kept sessions together. Further "
            + "publications are dropped."
    )
    private static let keptBytes = SharedLimitSetting.measured(
        "mqtt.sessions.maxQueuedBytes",
        defaults.keptBytes,
        from: 65_536,
        "The largest total size of the publications that wait in the queues of all kept sessions together. Further "
            + "publications are dropped."
    )
    private static let sharedGroups = SharedLimitSetting.counted(
        "mqtt.maxSharedGroups",
        defaults.sharedGroups,
        """
        The largest number of groups of shared subscriptions with connected members. A group counts once for each \
        account or address that has members in it. The limits on members are 16 times the limits on groups. Further \
        groups and members are refused.
        """
    )
    private static let retainedMessages = SharedLimitSetting.counted(
        "mqtt.retained.maxMessages",
        defaults.retainedMessages,
        from: 0,
        "The largest number of retained publications. A further publication over MQTT 5 with QoS 1 or 2 is refused. "
            + "Other further publications are delivered without being retained."
    )
    private static let retainedBytes = SharedLimitSetting.measured(
        "mqtt.retained.maxBytes",
        defaults.retainedBytes,
        from: 0,
        "The largest memory of all retained publications together. A publication takes its payload, topic and "
            + "properties, plus 352 bytes, plus 64 bytes for each level of the topic, plus 160 bytes if it expires."
    )

    /// The settings below `mqtt`.
    package static let settings: [SettingDescriptor] = {
        var all = [
            packet.descriptor, receiveMaximum.descriptor, inflight.descriptor, aliases.descriptor,
            subscriptions.descriptor, subscriptionBytes.descriptor, expiry.descriptor, queuedMessages.descriptor,
            queuedBytes.descriptor, sharedRedistribution.descriptor, keepAlive.descriptor, clientID.descriptor,
            will.descriptor, maximumQoS.descriptor, sysInterval.descriptor,
        ]
        for limit in [keptSessions, keptSubscriptions, keptMessages, keptBytes, sharedGroups] {
            all += limit.descriptors
        }
        all.append(retained.descriptor)
        return all + retainedMessages.descriptors + retainedBytes.descriptors
    }()

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        maxPacketBytes = try values.value(of: Self.packet)
        receiveMaximum = try values.value(of: Self.receiveMaximum)
        maxInflight = try values.value(of: Self.inflight)
        topicAliasMaximum = UInt16(clamping: try values.value(of: Self.aliases))
        maxSubscriptionsPerSession = try values.value(of: Self.subscriptions)
        maxSubscriptionBytesPerSession = try values.value(of: Self.subscriptionBytes)
        maxSessionExpiry = try values.value(of: Self.expiry)
        maxQueuedMessages = try values.value(of: Self.queuedMessages)
        maxQueuedBytes = try values.value(of: Self.queuedBytes)
        sharedRedistribution = try values.value(of: Self.sharedRedistribution)
        // The value is rounded up, because a value below one second would otherwise become 0, which means no limit.
        maxKeepAlive = UInt16(clamping: Int64((try values.value(of: Self.keepAlive) / .seconds(1)).rounded(.up)))
        maxClientIDBytes = try values.value(of: Self.clientID)
        maximumQoS = try values.value(of: Self.maximumQoS)
        isRetainAvailable = try values.value(of: Self.retained)
        sysInterval = try values.value(of: Self.sysInterval)
        maxWillBytes = try values.value(of: Self.will)
        retainedMessages = try Self.retainedMessages.value(in: values)
        retainedBytes = try Self.retainedBytes.value(in: values)
        sharedGroups = try Self.sharedGroups.value(in: values)
        keptSessions = try Self.keptSessions.value(in: values)
        keptSubscriptions = try Self.keptSubscriptions.value(in: values)
        keptMessages = try Self.keptMessages.value(in: values)
        keptBytes = try Self.keptBytes.value(in: values)
    }
}
