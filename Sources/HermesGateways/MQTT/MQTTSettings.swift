// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of the MQTT broker.
package struct MQTTSettings: GatewayOptions {
    /// The longest accepted packet, announced to clients of 5.0 as Maximum Packet Size.
    package var maxPacketBytes = 1 << 20
    /// The largest number of unacknowledged QoS 1 and 2 publications from a client; it is announced to clients of 5.0
    /// as Receive Maximum.
    package var receiveMaximum = 1024
    /// The number of unacknowledged QoS 1 and 2 publications to a client, if its own Receive Maximum is not lower.
    package var maxInflight = 1024
    /// The number of topic aliases of a client, announced to clients of 5.0; 0: none.
    package var topicAliasMaximum: UInt16 = 32
    package var maxSubscriptionsPerSession = 10_000
    /// The most bytes of all filters of one session.
    package var maxSubscriptionBytesPerSession = 1 << 20
    /// The longest time for which a session outlives its connection. It also applies to 3.1.1.
    package var maxSessionExpiry: Duration = .seconds(7 * 86_400)
    /// The most publications that wait for one session.
    package var maxQueuedMessages = 100_000
    /// The most bytes of publications that wait for one session.
    package var maxQueuedBytes = 64 << 20
    /// The time without a connection after which a kept session's messages from a shared subscription go to other
    /// members, if they were never sent; zero: never.
    package var sharedRedistribution: Duration = .seconds(60)
    /// The longest keep alive in seconds; it also applies to a 5.0 client that requests a longer keep alive or none. 0:
    /// no limit.
    package var maxKeepAlive: UInt16 = 0
    /// The longest client identifier, in bytes.
    package var maxClientIDBytes = 1_024
    /// The longest will with its topic and properties, in bytes. The default accepts every will without properties.
    package var maxWillBytes = 128 << 10
    /// The highest QoS of publications in both directions, 0 … 2; announced to clients of 5.0 if it is not 2.
    package var maximumQoS = 2
    /// Whether publications can be retained. If they cannot, clients of 5.0 are informed.
    package var isRetainAvailable = true
    package var retainedMessages = SharedLimit(400_000, perAccount: 100_000, perAddress: 50_000)
    /// The most bytes of all retained publications.
    package var retainedBytes = SharedLimit(256 << 20, perAccount: 64 << 20, perAddress: 32 << 20)
    /// The most groups of shared subscriptions; a group counts once for each of its owners.
    package var sharedGroups = SharedLimit(100_000, perAccount: 500, perAddress: 256)
    /// The most kept sessions, which outlive their connections. A publication may have to be stored for each of them
    /// before it is acknowledged. That takes some 20 µs for each session, and the publisher waits for it.
    package var keptSessions = SharedLimit(250_000, perAccount: 1_000, perAddress: 1_000)
    /// The most subscriptions of all kept sessions; a long filter counts for several.
    package var keptSubscriptions = SharedLimit(250_000, perAccount: 60_000, perAddress: 25_000)
    /// The most publications that wait for all kept sessions together.
    package var keptMessages = SharedLimit(100_000_000, perAccount: 10_000_000, perAddress: 1_000_000)
    /// The most bytes that wait for all kept sessions together.
    package var keptBytes = SharedLimit(16 << 30, perAccount: 4 << 30, perAddress: 512 << 20)
    /// The time between two publications of `$SYS/…`; zero: none.
    package var sysInterval: Duration = .seconds(10)

    package init() {}

    /// Whether clients without a name are allowed. MQTT has no setting of its own for that: `access.anonymous` decides.
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
        "The longest accepted packet; a longer one closes the connection."
    )
    private static let receiveMaximum = Setting.number(
        "mqtt.receiveMaximum",
        default: defaults.receiveMaximum,
        in: 1...65_535,
        "Unacknowledged QoS 1 and 2 publications that one client may have sent."
    )
    private static let inflight = Setting.number(
        "mqtt.maxInflight",
        default: defaults.maxInflight,
        in: 1...65_534,
        "Unacknowledged QoS 1 and 2 publications that the server sends to one client, unless the client asks for fewer."
    )
    private static let aliases = Setting.number(
        "mqtt.topicAliasMaximum",
        default: Int(defaults.topicAliasMaximum),
        in: 0...65_535,
        "Topic aliases that a client of MQTT 5 may use; 0: none."
    )
    private static let subscriptions = Setting.number(
        "mqtt.maxSubscriptionsPerSession",
        default: defaults.maxSubscriptionsPerSession,
        in: 1...1_000_000,
        "Subscriptions of one session; further ones are refused."
    )
    private static let subscriptionBytes = Setting.byteCount(
        "mqtt.maxSubscriptionBytesPerSession",
        default: defaults.maxSubscriptionBytesPerSession,
        in: 65_536...(1 << 30),
        "The total size of the filters of one session; further filters are refused."
    )
    private static let expiry = Setting.duration(
        "mqtt.maxSessionExpiry",
        default: defaults.maxSessionExpiry,
        in: .seconds(0) ... .seconds(3650 * 86_400),
        "The longest time that a session outlives its connection, also in MQTT 3.1.1."
    )
    private static let queuedMessages = Setting.number(
        "mqtt.maxQueuedMessages",
        default: defaults.maxQueuedMessages,
        in: 1...100_000_000,
        "Publications that wait for one session; further ones are dropped."
    )
    private static let queuedBytes = Setting.byteCount(
        "mqtt.maxQueuedBytes",
        default: defaults.maxQueuedBytes,
        in: 65_536...(1 << 40),
        "The total size of the publications that wait for one session; further ones are dropped."
    )
    private static let sharedRedistribution = Setting.duration(
        "mqtt.sharedRedistribution",
        default: defaults.sharedRedistribution,
        in: .seconds(0) ... .seconds(3650 * 86_400),
        """
        How long the client of a kept session may be away before messages of a shared subscription that were never \
        sent to it go to other members; 0 s: they never do.
        """
    )
    private static let keepAlive = Setting.duration(
        "mqtt.maxKeepAlive",
        default: .seconds(Int64(defaults.maxKeepAlive)),
        in: .seconds(0) ... .seconds(65_535),
        "The longest keep alive of MQTT 5.0 clients; a client that asks for a longer one, or for none, gets this one. "
            + "0 s: no limit."
    )
    private static let clientID = Setting.byteCount(
        "mqtt.maxClientIDBytes",
        default: defaults.maxClientIDBytes,
        in: 23...65_535,
        "The longest client identifier; a client with a longer one is refused."
    )
    private static let will = Setting.byteCount(
        "mqtt.maxWillBytes",
        default: defaults.maxWillBytes,
        in: 1024...(16 << 20),
        "The longest will with its topic and properties; a client with a longer one is refused."
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
        "Whether publications can be retained; if false, a client that tries to retain one is disconnected."
    )
    private static let sysInterval = Setting.duration(
        "mqtt.sysInterval",
        default: defaults.sysInterval,
        in: .seconds(0) ... .seconds(86_400),
        "The time between two publications of statistics to $SYS; 0 s: none."
    )

    /// The settings below `mqtt`.
    package static let settings: [SettingDescriptor] =
        [
            packet.descriptor, receiveMaximum.descriptor, inflight.descriptor, aliases.descriptor,
            subscriptions.descriptor, subscriptionBytes.descriptor, expiry.descriptor, queuedMessages.descriptor,
            queuedBytes.descriptor, sharedRedistribution.descriptor, keepAlive.descriptor, clientID.descriptor,
            will.descriptor, maximumQoS.descriptor, sysInterval.descriptor,
        ] + SharedLimitSetting.ofSessions.flatMap(\.descriptors)
        + SharedLimitSetting.sharedGroups.descriptors + [retained.descriptor]
        + SharedLimitSetting.ofRetained.flatMap(\.descriptors)

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
        // Rounded up, because a value below one second would otherwise become 0, which means no limit.
        maxKeepAlive = UInt16(clamping: Int64((try values.value(of: Self.keepAlive) / .seconds(1)).rounded(.up)))
        maxClientIDBytes = try values.value(of: Self.clientID)
        maximumQoS = try values.value(of: Self.maximumQoS)
        isRetainAvailable = try values.value(of: Self.retained)
        sysInterval = try values.value(of: Self.sysInterval)
        maxWillBytes = try values.value(of: Self.will)
        retainedMessages = try SharedLimitSetting.retainedMessages.value(in: values)
        retainedBytes = try SharedLimitSetting.retainedBytes.value(in: values)
        sharedGroups = try SharedLimitSetting.sharedGroups.value(in: values)
        keptSessions = try SharedLimitSetting.sessions.value(in: values)
        keptSubscriptions = try SharedLimitSetting.subscriptions.value(in: values)
        keptMessages = try SharedLimitSetting.messages.value(in: values)
        keptBytes = try SharedLimitSetting.bytes.value(in: values)
    }
}
