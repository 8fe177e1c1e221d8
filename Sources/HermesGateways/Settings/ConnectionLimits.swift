// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits of connections, the same for every protocol.
package struct ConnectionLimits: Sendable, Hashable {
    /// The connections of all listeners together.
    package var connections: Int
    package var connectionsPerAddress: Int
    /// The TLS handshakes per second of one address, on average; ten times as many at once.
    package var tlsHandshakesPerSecondPerAddress: Int
    /// The longest time of a connection without a login.
    package var timeToAuthenticate: Duration
    /// The longest time of a connection without sending a byte.
    package var idle: Duration
    /// The longest time in which a peer reads none of the output.
    package var stuck: Duration
    /// The bytes in one connection's output queue above which the protocol's policy for slow readers applies.
    package var outboundQueueBytes: Int
    /// The memory that may wait for all connections together, in bytes.
    package var memoryBytes: Int
    /// The average cost per second that one connection may cause, with the same again as a burst; see ``RequestCost``.
    package var requestsPerSecond: Int
    /// The same for all connections of one account.
    package var requestsPerSecondPerAccount: Int
    /// The same for all connections of one address.
    package var requestsPerSecondPerAddress: Int
    /// The longest time that a connection may exceed its rate without a pause.
    package var throttled: Duration
    /// The longest frame body of Delimited; the other protocols have their own, lower ones.
    package var maxFrameBytes: Int
    /// The longest frame body before the login, of any protocol.
    package var maxLoginFrameBytes: Int
    /// The most bytes of all connections together before their login.
    package var maxLoginBytes: Int

    package init(
        connections: Int = 100_000,
        connectionsPerAddress: Int = 2000,
        tlsHandshakesPerSecondPerAddress: Int = 50,
        timeToAuthenticate: Duration = .seconds(10),
        idle: Duration = .seconds(600),
        stuck: Duration = .seconds(60),
        outboundQueueBytes: Int = 1 << 20,
        memoryBytes: Int = 512 << 20,
        requestsPerSecond: Int = 5000,
        requestsPerSecondPerAccount: Int = 10_000,
        requestsPerSecondPerAddress: Int = 50_000,
        throttled: Duration = .seconds(600),
        maxFrameBytes: Int = 1 << 20,
        maxLoginFrameBytes: Int = 1 << 20,
        maxLoginBytes: Int = 64 << 20
    ) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
        self.tlsHandshakesPerSecondPerAddress = tlsHandshakesPerSecondPerAddress
        self.timeToAuthenticate = timeToAuthenticate
        self.idle = idle
        self.stuck = stuck
        self.outboundQueueBytes = outboundQueueBytes
        self.memoryBytes = memoryBytes
        self.requestsPerSecond = requestsPerSecond
        self.requestsPerSecondPerAccount = requestsPerSecondPerAccount
        self.requestsPerSecondPerAddress = requestsPerSecondPerAddress
        self.throttled = throttled
        self.maxFrameBytes = maxFrameBytes
        self.maxLoginFrameBytes = maxLoginFrameBytes
        self.maxLoginBytes = maxLoginBytes
    }
}

extension ConnectionLimits {
    private static let defaults = ConnectionLimits()

    private static let connections = Setting.number(
        "limits.connections",
        default: defaults.connections,
        in: 1...1_000_000,
        "Connections of all listeners together; further ones are closed at once."
    )
    private static let connectionsPerAddress = Setting.number(
        "limits.connectionsPerAddress",
        default: defaults.connectionsPerAddress,
        in: 1...1_000_000,
        "Connections from one IP address; further ones are closed at once."
    )
    private static let tlsHandshakesPerSecondPerAddress = Setting.number(
        "limits.tlsHandshakesPerSecondPerAddress",
        default: defaults.tlsHandshakesPerSecondPerAddress,
        in: 1...1_000_000,
        "TLS handshakes from one IP address per second, on average, with ten times as many at once; further connections "
            + "are closed before the handshake."
    )
    private static let timeToAuthenticate = Setting.duration(
        "limits.timeToAuthenticate",
        default: defaults.timeToAuthenticate,
        in: .milliseconds(100) ... .seconds(600),
        "How long a connection may stay open before the login."
    )
    private static let idle = Setting.duration(
        "limits.idle",
        default: defaults.idle,
        in: .seconds(1) ... .seconds(86_400),
        "How long a connection may stay without sending a byte. MQTT has its keep alive instead, LiveRoom liveroom.silence."
    )
    private static let stuck = Setting.duration(
        "limits.stuck",
        default: defaults.stuck,
        in: .seconds(1) ... .seconds(86_400),
        "How long a client may take none of its output before the connection is closed."
    )
    private static let outboundQueue = Setting.byteCount(
        "limits.outboundQueue",
        default: defaults.outboundQueueBytes,
        in: 16_384...(1 << 30),
        "Bytes in one connection's output queue above which its client counts as too slow."
    )
    private static let requestsPerSecond = Setting.number(
        "limits.requestsPerSecond",
        default: defaults.requestsPerSecond,
        in: 1...1_000_000,
        "Cost of one connection's requests per second, on average, with the same again as a burst (docs/security.md). "
            + "Requests beyond it wait."
    )
    private static let requestsPerSecondPerAccount = Setting.number(
        "limits.requestsPerSecondPerAccount",
        default: defaults.requestsPerSecondPerAccount,
        in: 1...10_000_000,
        "The same limit for all connections of one account together."
    )
    private static let requestsPerSecondPerAddress = Setting.number(
        "limits.requestsPerSecondPerAddress",
        default: defaults.requestsPerSecondPerAddress,
        in: 1...10_000_000,
        "The same limit for all connections of one IP address together. The default is about half a processor."
    )
    private static let throttled = Setting.duration(
        "limits.throttled",
        default: defaults.throttled,
        in: .seconds(10) ... .seconds(86_400),
        "How long a connection may exceed its request rate before it is closed."
    )
    private static let memory = Setting.byteCount(
        "limits.memory",
        default: defaults.memoryBytes,
        in: (16 << 20)...(1 << 40),
        "Memory that may wait for all connections together. Beyond it, the largest consumers first lose droppable output, "
            + "then their connections."
    )
    private static let frame = Setting.byteCount(
        "limits.frame",
        default: defaults.maxFrameBytes,
        in: 1024...(64 << 20),
        "The longest frame body of Delimited; a longer one closes the connection."
    )

    private static let loginFrame = Setting.byteCount(
        "limits.loginFrame",
        default: defaults.maxLoginFrameBytes,
        in: 16_384...(64 << 20),
        "The longest frame body before the login; a longer one closes the connection. Only MQTT needs more than "
            + "16 KiB: a CONNECT of 3.1.1 can have 328 KB, one of 5.0 with properties more. Other protocols have 16 KiB."
    )
    private static let loginBytes = Setting.byteCount(
        "limits.loginBytes",
        default: defaults.maxLoginBytes,
        in: 65_536...(1 << 40),
        "Bytes that all connections together may have sent before their login; beyond it, the connection that has sent "
            + "most is closed."
    )

    /// The connection settings below `limits`.
    package static let settings: [SettingDescriptor] = [
        connections.descriptor, connectionsPerAddress.descriptor, tlsHandshakesPerSecondPerAddress.descriptor,
        timeToAuthenticate.descriptor, idle.descriptor, stuck.descriptor, outboundQueue.descriptor, memory.descriptor,
        requestsPerSecond.descriptor,
        requestsPerSecondPerAccount.descriptor, requestsPerSecondPerAddress.descriptor, throttled.descriptor,
        frame.descriptor, loginFrame.descriptor, loginBytes.descriptor,
    ]

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            connections: try values.value(of: Self.connections),
            connectionsPerAddress: try values.value(of: Self.connectionsPerAddress),
            tlsHandshakesPerSecondPerAddress: try values.value(of: Self.tlsHandshakesPerSecondPerAddress),
            timeToAuthenticate: try values.value(of: Self.timeToAuthenticate),
            idle: try values.value(of: Self.idle),
            stuck: try values.value(of: Self.stuck),
            outboundQueueBytes: try values.value(of: Self.outboundQueue),
            memoryBytes: try values.value(of: Self.memory),
            requestsPerSecond: try values.value(of: Self.requestsPerSecond),
            requestsPerSecondPerAccount: try values.value(of: Self.requestsPerSecondPerAccount),
            requestsPerSecondPerAddress: try values.value(of: Self.requestsPerSecondPerAddress),
            throttled: try values.value(of: Self.throttled),
            maxFrameBytes: try values.value(of: Self.frame),
            maxLoginFrameBytes: try values.value(of: Self.loginFrame),
            maxLoginBytes: try values.value(of: Self.loginBytes)
        )
    }
}
