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
/// The client reconnects by itself: it resumes its session or subscribes anew, and sends unacknowledged publications
/// again, marked as duplicates. A message is acknowledged when the app asks for the next one, so that a slow app slows
/// the server down instead of filling its own memory.
public final class MQTTClient: Sendable {
    /// A client's settings.
    public struct Configuration: Sendable {
        /// The server's MQTT port. With a WebSocket, for example at "/mqtt", its HTTP port.
        public var server: ServerAddress
        /// The protocol version.
        public var version: Version
        /// The client identifier, which names the session. Empty: the server assigns one; this needs a clean start.
        public var clientID: String
        /// Whether the first connection discards the server's session of an earlier run. With 3.1.1, true also makes
        /// each session end with its connection (clean session).
        public var cleanStart: Bool
        /// The time that the server keeps the session without a connection, in whole seconds; MQTT 5.0 only. 2^32 - 1
        /// seconds: forever.
        public var sessionExpiry: Duration
        /// The user name; nil: anonymous, or the name in the client certificate.
        public var userName: String?
        /// The password or a token.
        public var password: String?
        /// The message that the server publishes when the client disappears without DISCONNECT.
        public var will: MQTTMessage?
        /// The time that the server waits for the client to return before it publishes the will, in whole seconds; MQTT
        /// 5.0 only.
        public var willDelay: Duration
        /// When to send heartbeats; the longest interval is CONNECT's keep alive.
        public var heartbeat: HeartbeatPolicy
        /// When to reconnect.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network; in tests another than the shared one.
        package var conditions: DeviceConditions
        /// The time limit for subscribing, reconnects included.
        public var requestTimeout: Duration
        /// The time limit for a publication's acknowledgement, reconnects included.
        public var publishTimeout: Duration
        /// The number of unacknowledged QoS 1 and 2 messages that the server may send: 1 to 65,535; MQTT 5.0 only.
        package var receiveMaximum: Int
        /// The number of topic aliases that the server may use; MQTT 5.0 only.
        package var topicAliasMaximum: Int
        /// The longest packet accepted from the server, in bytes.
        package var maxPacketBytes: Int
        /// The number of messages that may wait for the app; above it, QoS 0 messages are dropped.
        public var maxQueuedMessages: Int
        /// The bytes of messages that may wait for the app; above it, QoS 0 messages are dropped.
        public var maxQueuedBytes: Int
        /// User properties for CONNECT; MQTT 5.0 only.
        package var userProperties: [MQTTMessage.UserProperty]

        /// Creates a configuration with the defaults for an app: MQTT 5.0, a clean session.
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

        /// CONNECT's keep alive; 0 (none) if the interval is too long for the field.
        var keepAliveSeconds: UInt16 { UInt16(exactly: heartbeat.longestInterval.wholeSeconds) ?? 0 }
    }

    let driver: ConnectionDriver<MQTTLink>
    let configuration: Configuration

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: the client's settings.
    ///   - eventLoop: the loop of its connection; nil: one of the process's shared loops.
    ///   - logger: gets messages at debug level, without contents or secrets.
    /// - Throws: HermesClientError if the TLS options are invalid, or CONNECT cannot be encoded.
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
    /// If the body returns, the last message counts as taken.
    ///
    /// - Throws: the body's error; HermesClientError if the server refuses or the policy gives up.
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

    /// Connects. From then on the client stays connected until `close`, or until the server ends the connection for
    /// good.
    ///
    /// - Returns: the server's answer.
    /// - Throws: HermesClientError if the server refuses (see ``HermesClientError/mqttReason``), or if the policy gives
    ///   up.
    @discardableResult
    public func connect() async throws -> Connection { try await driver.start() }

    /// Arriving messages, each once and in order, for a single loop. Ends when the client has stopped.
    ///
    /// A message of QoS 1 or 2 counts as taken, and is acknowledged to the server, when the app asks for the next one.
    public var messages: ClientEvents<MQTTMessage> {
        ClientEvents { await self.driver.nextEvent()?.message }
    }

    /// Sets the user name and the password for later connections, for example when a token is about to expire. The
    /// server ends the present connection when its token expires; the client then comes back with the new one.
    ///
    /// - Parameters:
    ///   - userName: the user name; nil: anonymous, or the name in the client certificate.
    ///   - password: the password or a token.
    public func useCredentials(userName: String?, password: String?) async {
        await driver.useCredentials(userName, password)
    }

    /// The number of the present connection. If it has changed, QoS 0 publications may be lost.
    package var connectionNumber: UInt64 {
        get async { await driver.attempt }
    }

    /// The number of QoS 0 messages that were dropped because too many waited for the app.
    public var droppedMessages: Int {
        get async { await driver.link.dropped }
    }

    /// The number of numbered pushes to topics that did not arrive: the sum of ``MQTTMessage/missedPushes``.
    package var missedPushes: UInt64 {
        get async { await driver.link.topics.missed }
    }

    /// The connection's states from now on, the present one first. Each call returns its own stream. The stream ends
    /// when the client next stops or is deinitialized.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// Disconnects; the server does not publish the will.
    ///
    /// - Parameter takingLastMessage: whether the app is done with the last message; if not, one of QoS 1 or 2 comes
    ///   again.
    public func close(takingLastMessage: Bool = true) async { await driver.close(takesLast: takingLastMessage) }

    /// Waits until the client has stopped; closes it if the task is cancelled. After a cancellation the last message
    /// comes again if it has QoS 1 or 2, because the app may still be handling it. Call ``close(takingLastMessage:)``
    /// instead if the app is done with it.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client.
    public func run() async throws { try await driver.run() }

    /// Waits until the client has stopped. A cancelled task leaves the client open, so that its owner can close it and
    /// say whether the last message was taken.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client; CancellationError.
    package func stopped() async throws { try await driver.waitUntilStopped() }
}

extension ConnectionDriver where Link == MQTTLink {
    func useCredentials(_ userName: String?, _ password: String?) { link.useCredentials(userName, password) }
}
