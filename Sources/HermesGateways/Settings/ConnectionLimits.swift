// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The limits of connections, the same for every protocol.
package struct ConnectionLimits: Sendable, Hashable {
    /// The largest number of connections of all listeners together.
    package var connections = 100_000
    package var connectionsPerAddress = 2000
    /// The largest number of TLS handshakes per second of one address, on average. Ten times as many may arrive at
    /// once.
    package var tlsHandshakesPerSecondPerAddress = 50
    /// The longest time that a connection may stay open before the login.
    package var timeToAuthenticate = Duration.seconds(10)
    /// The longest time for which a client may send nothing.
    package var idle = Duration.seconds(600)
    /// The longest time for which a client may read none of its output.
    package var stuck = Duration.seconds(60)
    /// The size of one connection's output queue, in bytes, above which output is dropped or the connection is closed.
    package var outboundQueueBytes = 1 << 20
    /// The largest amount of memory that all connections together may hold for waiting input and output, in bytes.
    package var memoryBytes = 512 << 20
    /// The cost per second that one connection may cause on average (``RequestCost``). The whole cost of one second may
    /// be used at once.
    package var requestsPerSecond = 5000
    /// The cost per second that all connections of one account together may cause on average.
    package var requestsPerSecondPerAccount = 10_000
    /// The cost per second that all connections of one address together may cause on average.
    package var requestsPerSecondPerAddress = 50_000
    /// The longest time for which a connection may keep exceeding its rate before it is closed.
    package var throttled = Duration.seconds(600)
    /// The longest frame body of Delimited, in bytes. The other protocols have their own limits.
    package var maxFrameBytes = 1 << 20
    /// The longest frame body before the login, in bytes. Most protocols have their own lower limit.
    package var maxLoginFrameBytes = 1 << 20
    /// The largest number of bytes that all connections together may have sent before their login.
    package var maxLoginBytes = 64 << 20

    package init() {}
}

extension ConnectionLimits: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .number(
            \.connections,
            "limits.connections",
            in: 1...1_000_000,
            "The largest number of connections of all listeners together. Further connections are closed at once."
        ),
        .number(
            \.connectionsPerAddress,
            "limits.connectionsPerAddress",
            in: 1...1_000_000,
            "The largest number of connections from one IP address. Further connections are closed at once."
        ),
        .number(
            \.tlsHandshakesPerSecondPerAddress,
            "limits.tlsHandshakesPerSecondPerAddress",
            in: 1...1_000_000,
            "The largest number of TLS handshakes per second from one IP address, on average. Ten times as many are "
                + "allowed in a burst. Further connections are closed before the handshake."
        ),
        .duration(
            \.timeToAuthenticate,
            "limits.timeToAuthenticate",
            in: .milliseconds(100) ... .seconds(600),
            "How long a connection may stay open without a login."
        ),
        .duration(
            \.idle,
            "limits.idle",
            in: .seconds(1) ... .seconds(86_400),
            "How long a client may send nothing before its connection is closed. MQTT uses its keep alive instead, and "
                + "LiveRoom uses liveroom.silence."
        ),
        .duration(
            \.stuck,
            "limits.stuck",
            in: .seconds(1) ... .seconds(86_400),
            "How long a client may read nothing of its waiting output before its connection is closed."
        ),
        .byteCount(
            \.outboundQueueBytes,
            "limits.outboundQueue",
            in: 16_384...(1 << 30),
            "If the output queue of a connection is larger than this size, the client counts as too slow."
        ),
        .byteCount(
            \.memoryBytes,
            "limits.memory",
            in: (16 << 20)...(1 << 40),
            "The memory for the data of all connections together. When it is used up, the server frees memory, "
                + "beginning with the addresses that hold the most. It drops output that may be dropped, and closes a "
                + "connection if more than half of the connection's memory remains."
        ),
        .number(
            \.requestsPerSecond,
            "limits.requestsPerSecond",
            in: 1...1_000_000,
            "The largest cost per second that the requests of one connection may have, on average, in units "
                + "(docs/security.md). The whole cost of one second may be used at once. Requests beyond this rate "
                + "wait."
        ),
        .number(
            \.requestsPerSecondPerAccount,
            "limits.requestsPerSecondPerAccount",
            in: 1...10_000_000,
            "Like limits.requestsPerSecond, but for all connections of one account together."
        ),
        .number(
            \.requestsPerSecondPerAddress,
            "limits.requestsPerSecondPerAddress",
            in: 1...10_000_000,
            "Like limits.requestsPerSecond, but for all connections of one IP address together. Requests at the "
                + "default rate take about half the time of one processor core."
        ),
        .duration(
            \.throttled,
            "limits.throttled",
            in: .seconds(10) ... .seconds(86_400),
            "How long a connection may exceed its request rate before it is closed."
        ),
        .byteCount(
            \.maxFrameBytes,
            "limits.frame",
            in: 1024...(64 << 20),
            "The longest body of a Delimited frame. If a body is longer, the server closes the connection."
        ),
        .byteCount(
            \.maxLoginFrameBytes,
            "limits.loginFrame",
            in: 16_384...(64 << 20),
            "The longest frame body before the login. If a body is longer, the server closes the connection. Only MQTT "
                + "needs more than 16 KiB: a CONNECT of MQTT 3.1.1 can have 328 KB, and a CONNECT of 5.0 with "
                + "properties can have even more. For the other protocols, the limit is always 16 KiB."
        ),
        .byteCount(
            \.maxLoginBytes,
            "limits.loginBytes",
            in: 65_536...(1 << 40),
            "The largest number of bytes that all connections without a login together may have sent. Beyond this "
                + "number, the connection that has sent the most is closed."
        ),
    ]
}
