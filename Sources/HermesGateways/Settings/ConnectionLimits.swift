// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What connections may take, the same for every protocol.
package struct ConnectionLimits: Sendable, Hashable {
    /// Of all listeners together.
    package var connections: Int
    package var connectionsPerAddress: Int
    /// How long a connection may stay without having logged in.
    package var timeToAuthenticate: Duration
    /// How long a connection may stay without sending a byte.
    package var idle: Duration
    /// How long a peer may take nothing of what is sent to it.
    package var stuck: Duration
    /// Bytes that wait to be written to one connection before the protocol's policy for slow readers applies.
    package var outboundQueueBytes: Int
    /// What may wait in memory for all connections together, in bytes.
    package var memoryBytes: Int
    /// What one connection may cause a second, averaged, with as much again as a burst; see ``RequestCost``.
    package var requestsPerSecond: Int
    /// The same of all connections of one account.
    package var requestsPerSecondPerAccount: Int
    /// The same of all connections of one address.
    package var requestsPerSecondPerAddress: Int
    /// How long a connection may ask for more than that without a pause.
    package var throttled: Duration
    /// The longest frame body of Delimited; the other protocols have their own, lower ones.
    package var maxFrameBytes: Int
    /// The longest frame body from a connection that has not logged in, of any protocol.
    package var maxLoginFrameBytes: Int
    /// What all connections together may have sent that have not logged in, in bytes.
    package var maxLoginBytes: Int

    package init(
        connections: Int = 100_000,
        connectionsPerAddress: Int = 2000,
        timeToAuthenticate: Duration = .seconds(10),
        idle: Duration = .seconds(600),
        stuck: Duration = .seconds(60),
        outboundQueueBytes: Int = 1 << 20,
        memoryBytes: Int = 512 << 20,
        requestsPerSecond: Int = 5000,
        requestsPerSecondPerAccount: Int = 10_000,
        requestsPerSecondPerAddress: Int = 100_000,
        throttled: Duration = .seconds(600),
        maxFrameBytes: Int = 1 << 20,
        maxLoginFrameBytes: Int = 1 << 20,
        maxLoginBytes: Int = 64 << 20
    ) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
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
