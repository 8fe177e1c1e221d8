// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The limits of connections, the same for every protocol.
package struct ConnectionLimits: Sendable, Hashable {
    /// The largest number of connections of all listeners together.
    package var connections: Int
    package var connectionsPerAddress: Int
    /// The largest number of TLS handshakes per second of one address, on average. Ten times as many may arrive at
    /// once.
    package var tlsHandshakesPerSecondPerAddress: Int
    /// The longest time that a connection may stay open before the login.
    package var timeToAuthenticate: Duration
    /// The longest time for which a client may send nothing.
    package var idle: Duration
    /// The longest time for which a client may read none of its output.
    package var stuck: Duration
    /// The size of one connection's output queue, in bytes, above which output is dropped or the connection is closed.
    package var outboundQueueBytes: Int
    /// The largest amount of memory that all connections together may hold for waiting input and output, in bytes.
    package var memoryBytes: Int
    /// The cost per second that one connection may cause on average (``RequestCost``). The whole cost of one second may
    /// be used at once.
    package var requestsPerSecond: Int
    /// The cost per second that all connections of one account together may cause on average.
    package var requestsPerSecondPerAccount: Int
    /// The cost per second that all connections of one address together may cause on average.
    package var requestsPerSecondPerAddress: Int
    /// The longest time for which a connection may keep exceeding its rate before it is closed.
    package var throttled: Duration
    /// The longest frame body of Delimited, in bytes. The other protocols have their own limits.
    package var maxFrameBytes: Int
    /// The longest frame body before the login, in bytes. Most protocols have their own lower limit.
    package var maxLoginFrameBytes: Int
    /// The largest number of bytes that all connections together may have sent before their login.
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
        "The largest number of connections of all listeners together. Further connections are closed at once."
    )
    private static let connectionsPerAddress = Setting.number(
        "limits.connectionsPerAddress",
        default: defaults.connectionsPerAddress,
        in: 1...1_000_000,
        "The largest number of connections from one IP address. Further connections are closed at once."
    )
    private static let tlsHandshakesPerSecondPerAddress = Setting.number(
        "limits.tlsHandshakesPerSecondPerAddress",
        default: defaults.tlsHandshakesPerSecondPerAddress,
        in: 1...1_000_000,
        "The largest number of TLS handshakes per second from one IP address, on average. Ten times as many are "
            + "allowed in a burst. Further connections are closed before the handshake."
    )
    private static let timeToAuthenticate = Setting.duration(
        "limits.timeToAuthenticate",
        default: defaults.timeToAuthenticate,
        in: .milliseconds(100) ... .seconds(600),
        "How long a connection may stay open without a login."
    )
    private static let idle = Setting.duration(
        "limits.idle",
        default: defaults.idle,
        in: .seconds(1) ... .seconds(86_400),
        "How long a client may send nothing before its connection is closed. MQTT uses its keep alive instead, and "
            + "LiveRoom uses liveroom.silence."
    )
    private static let stuck = Setting.duration(
        "limits.stuck",
        default: defaults.stuck,
        in: .seconds(1) ... .seconds(86_400),
        "How long a client may read nothing of its waiting output before its connection is closed."
    )
    private static let outboundQueue = Setting.byteCount(
        "limits.outboundQueue",
        default: defaults.outboundQueueBytes,
        in: 16_384...(1 << 30),
        "If the output queue of a connection is larger than this size, the client counts as too slow."
    )
    private static let requestsPerSecond = Setting.number(
        "limits.requestsPerSecond",
        default: defaults.requestsPerSecond,
        in: 1...1_000_000,
        "The largest cost per second that the requests of one connection may have, on average, in units "
            + "(docs/security.md). The whole cost of one second may be used at once. Requests beyond "
            + "this rate wait."
    )
    private static let requestsPerSecondPerAccount = Setting.number(
        "limits.requestsPerSecondPerAccount",
        default: defaults.requestsPerSecondPerAccount,
        in: 1...10_000_000,
        "Like limits.requestsPerSecond, but for all connections of one account together."
    )
    private static let requestsPerSecondPerAddress = Setting.number(
        "limits.requestsPerSecondPerAddress",
        default: defaults.requestsPerSecondPerAddress,
        in: 1...10_000_000,
        "Like limits.requestsPerSecond, but for all connections of one IP address together. Requests at the "
            + "default rate take about half the time of one processor core."
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
        "The memory for the data of all connections together. When it is used up, the server frees memory, "
            + "beginning with the addresses that hold the most. It drops output that may be dropped, and closes a "
            + "connection if more than half of the connection's memory remains."
    )
    private static let frame = Setting.byteCount(
        "limits.frame",
        default: defaults.maxFrameBytes,
        in: 1024...(64 << 20),
        "The longest body of a Delimited frame. If a body is longer, the server closes the connection."
    )

    private static let loginFrame = Setting.byteCount(
        "limits.loginFrame",
        default: defaults.maxLoginFrameBytes,
        in: 16_384...(64 << 20),
        "The longest frame body before the login. If a body is longer, the server closes the connection. Only MQTT "
            + "needs more than 16 KiB: a CONNECT of MQTT 3.1.1 can have 328 KB, and a CONNECT of 5.0 with properties "
            + "can have even more. For the other protocols, the limit is always 16 KiB."
    )
    private static let loginBytes = Setting.byteCount(
        "limits.loginBytes",
        default: defaults.maxLoginBytes,
        in: 65_536...(1 << 40),
        "The largest number of bytes that all connections without a login together may have sent. Beyond this number, "
            + "the connection that has sent the most is closed."
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
