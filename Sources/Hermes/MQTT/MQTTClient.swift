// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A client of MQTT 3.1.1 and 5.0, over TCP, TLS and WebSocket, with QoS 0, 1 and 2.
///
/// ```swift
/// var configuration = MQTTClient.Configuration(server: ServerAddress(host: "broker.example", port: 8883))
/// configuration.clientID = "thermometer-1"
/// try await MQTTClient.withClient(configuration) { client, _ in
///     try await client.subscribe(to: "home/+/temperature", qos: .atLeastOnce) { messages in
///         try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
///         for await message in messages { print(message.topic, message.text ?? "") }
///     }
/// }
/// ```
///
/// The client reconnects by itself. It then resumes its session or subscribes again, and sends unacknowledged
/// publications again, marked as duplicates. A message of QoS 1 or 2 is acknowledged when the app asks for the next
/// message. A slow app thus slows the server down instead of filling its own memory.
public final class MQTTClient: Sendable {
    /// A client's settings.
    public struct Configuration: Sendable {
        /// The server's address. The port is the server's MQTT port. For a WebSocket, which often has the path
        /// "/mqtt", it is the server's HTTP port.
        public var server: ServerAddress
        /// The protocol version.
        public var version: Version
        /// The client identifier, which names the session. If it is empty, the server assigns one; this requires a
        /// clean start.
        public var clientID: String
        /// Whether the first connection discards the session that the server keeps from an earlier run. With MQTT
        /// 3.1.1, `true` also makes each session end with its connection (clean session).
        public var cleanStart: Bool
        /// The time for which the server keeps the session without a connection, in whole seconds; MQTT 5.0 only. A
        /// time of 2^32 - 1 s means forever.
        public var sessionExpiry: Duration
        /// The user name; nil if the client is anonymous, or if the server takes the name from the client's
        /// certificate.
        public var userName: String?
        /// The password or a token.
        public var password: String?
        /// The message that the server publishes when the connection ends without a DISCONNECT.
        public var will: MQTTMessage?
        /// The time for which the server waits for the client to return before it publishes the will, in whole seconds;
        /// MQTT 5.0 only.
        public var willDelay: Duration
        /// The policy for heartbeats. The longest interval of the policy is the keep alive in CONNECT.
        public var heartbeat: HeartbeatPolicy
        /// The policy for reconnecting.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network: ``DeviceConditions/shared``, except in tests.
        package var conditions: DeviceConditions
        /// The time limit for subscribing, unsubscribing and pings, including the time for reconnects.
        public var requestTimeout: Duration
        /// The time limit for a publication's acknowledgement, including the time for reconnects.
        public var publishTimeout: Duration
        /// The largest number of unacknowledged QoS 1 and 2 messages that the server may send: 1 to 65,535; MQTT 5.0
        /// only.
        package var receiveMaximum: Int
        /// The largest number of topic aliases that the server may use; MQTT 5.0 only.
        package var topicAliasMaximum: Int
        /// The longest packet accepted from the server, in bytes.
        package var maxPacketBytes: Int
        /// The number of messages that may wait for the app. Beyond this number, QoS 0 messages are dropped.
        public var maxQueuedMessages: Int
        /// The total size of the messages that may wait for the app, in bytes. Beyond this size, QoS 0 messages are
        /// dropped.
        public var maxQueuedBytes: Int
        /// User properties for CONNECT; MQTT 5.0 only.
        package var userProperties: [MQTTMessage.UserProperty]

        /// Creates a configuration with the defaults for an app: MQTT 5.0 with a clean start.
        public init(server: ServerAddress = ServerAddress(port: 1883), clientID: String = "") {
            self.server = server
            self.clientID = clientID
            version = .v5
            cleanStart = true
            sessionExpiry = .zero
            willDelay = .zero
            heartbeat = .mqtt
            reconnect = .standard
            conditions = .shared
            requestTimeout = .seconds(15)
            publishTimeout = .seconds(300)
            receiveMaximum = 256
            topicAliasMaximum = 32
            maxPacketBytes = 1_048_576
            maxQueuedMessages = 100_000
            maxQueuedBytes = 64 * 1_048_576
            userProperties = []
        }

        /// The keep alive in CONNECT, in seconds. It is 0, which means none, if the interval is too long for the
        /// field.
        var keepAliveSeconds: UInt16 { UInt16(exactly: heartbeat.longestInterval.wholeSeconds) ?? 0 }
    }

    let driver: ConnectionDriver<MQTTLink>
    let configuration: Configuration

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: the client's settings.
    ///   - eventLoop: the event loop of the client's connection. If it is nil, the client uses one of the process's
    ///     shared event loops.
    ///   - logger: the logger that gets log messages at debug level, without message contents or secrets.
    /// - Throws: HermesClientError if the TLS options are invalid, or if CONNECT cannot be encoded.
    public init(
        _ configuration: Configuration,
        eventLoop: (any EventLoop)? = nil,
        logger: Logger? = nil
    ) throws {
        self.configuration = configuration
        let link = MQTTLink(configuration)
        try link.validate()
        driver = ConnectionDriver(
            link: link,
            eventLoop: eventLoop ?? Connector.defaultEventLoop(),
            heartbeat: configuration.heartbeat,
            reconnect: configuration.reconnect,
            conditions: configuration.conditions,
            logger: logger,
            connector: try Connector(configuration.server, subprotocol: "mqtt").connect
        )
    }

    deinit { driver.abandon() }

    /// Connects, runs the body, and then disconnects, even if the body throws.
    ///
    /// If the body returns, the last message that it got counts as taken.
    ///
    /// - Throws: the body's error; HermesClientError if the server refuses the connection, or if the reconnect policy
    ///   allows no further try.
    public nonisolated(nonsending) static func withClient<Result>(
        _ configuration: Configuration,
        logger: Logger? = nil,
        _ body: nonisolated(nonsending) (MQTTClient, Connection) async throws -> Result
    ) async throws -> Result {
        let client = try MQTTClient(configuration, logger: logger)
        do {
            let connection = try await client.connect()
            let result = try await body(client, connection)
            await client.close()
            return result
        } catch {
            await client.driver.close(takesLast: false)
            throw error
        }
    }

    /// Connects. From then on the client reconnects by itself, until the app calls `close`, the server ends the
    /// connection permanently, or the reconnect policy allows no further try.
    ///
    /// - Returns: the server's answer.
    /// - Throws: HermesClientError if the server refuses the connection (see ``HermesClientError/mqttReason``), or if
    ///   the reconnect policy allows no further try.
    @discardableResult
    public func connect() async throws -> Connection { try await driver.start() }

    /// The messages that arrive, each once and in order. Only one loop may read the sequence. It ends when the client
    /// has stopped.
    ///
    /// A message of QoS 1 or 2 counts as taken, and is acknowledged to the server, when the app asks for the next
    /// message.
    public var messages: ClientEvents<MQTTMessage> {
        ClientEvents { await self.driver.nextEvent()?.message }
    }

    /// Sets the user name and the password for later connections, for example when a token is about to expire. The
    /// server ends the present connection when its token expires; the client then reconnects with the new credentials.
    ///
    /// - Parameters:
    ///   - userName: the user name; nil if the client is anonymous, or if the server takes the name from the client's
    ///     certificate.
    ///   - password: the password or a token.
    /// - Throws: HermesClientError `.notEncodable` if CONNECT cannot carry the values; the client then keeps the former
    ///   values.
    public func useCredentials(userName: String?, password: String?) async throws {
        try await driver.useCredentials(userName, password)
    }

    /// The number of the present connection. If it has changed, QoS 0 publications may have been lost.
    package var connectionNumber: UInt64 {
        get async { await driver.attempt }
    }

    /// The number of QoS 0 messages that were dropped because too many messages waited for the app.
    public var droppedMessages: Int {
        get async { await driver.link.dropped }
    }

    /// The number of pushes that the server numbered and that did not arrive: the sum of ``MQTTMessage/missedPushes``.
    package var missedPushes: UInt64 {
        get async { await driver.link.topics.missed }
    }

    /// The states of the connection, beginning with the present state. Each access returns a new stream, which ends
    /// when the client next stops or is deinitialized.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// Disconnects; the server does not publish the will.
    ///
    /// - Parameter takingLastMessage: whether the app is done with the last message that it got. If not, a message of
    ///   QoS 1 or 2 is delivered again.
    public func close(takingLastMessage: Bool = true) async { await driver.close(takesLast: takingLastMessage) }

    /// Waits until the client has stopped. If the task is cancelled, closes the client. If the last message has QoS 1
    /// or 2, it is then delivered again, because the app may still be handling it. If the app is done with the last
    /// message, call ``close(takingLastMessage:)`` instead of cancelling the task.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client.
    public func run() async throws { try await driver.run() }

    /// Waits until the client has stopped. If the task is cancelled, the client stays open, so that its owner can close
    /// it and say whether the last message was taken.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client; CancellationError.
    package func stopped() async throws { try await driver.waitUntilStopped() }

    /// The reason for which the client has stopped; nil if it has not stopped, or if the app closed it.
    package var stopReason: HermesClientError? { get async { await driver.stopReason } }
}

extension ConnectionDriver where Link == MQTTLink {
    func useCredentials(_ userName: String?, _ password: String?) throws(HermesClientError) {
        try link.useCredentials(userName, password)
    }
}
