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
