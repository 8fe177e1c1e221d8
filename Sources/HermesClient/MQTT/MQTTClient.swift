// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A client of MQTT 3.1.1 and 5.0, over TCP, TLS and WebSocket: publishes and subscribes at all qualities of service.
///
/// ```swift
/// var configuration = MQTTClient.Configuration(server: ServerAddress(host: "broker.example", port: 1883))
/// configuration.clientID = "thermometer-1"
/// try await MQTTClient.withClient(configuration) { client, _ in
///     try await client.subscribe(to: "home/+/temperature", qos: .atLeastOnce)
///     try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
///     for await message in client.messages { print(message.topic, message.text ?? "") }
/// }
/// ```
///
/// The client connects again by itself: it gets its session back or subscribes anew, and what was published and not
/// acknowledged is sent again, marked as a duplicate. A message that arrived is acknowledged when the app asks for the
/// next one, so that a slow app slows the server down instead of filling its own memory.
public final class MQTTClient: Sendable {
    /// How a client behaves.
    public struct Configuration: Sendable {
        /// The server's MQTT port.
        public var server: ServerAddress
        /// The path of a WebSocket, for example "/mqtt"; nil: MQTT without WebSocket.
        public var webSocketPath: String?
        /// The version that is spoken.
        public var version: Version
        /// Names the session; empty: the server chooses, which needs a clean start.
        public var clientID: String
        /// Whether the first connection drops what the server has of an earlier run. With 3.1.1, true also means that
        /// the session ends with each connection (clean session).
        public var cleanStart: Bool
        /// How long the server keeps the session without a connection, in whole seconds; MQTT 5.0 only.
        /// 2^32 - 1 seconds: for ever.
        public var sessionExpiry: Duration
        /// Who logs in; nil: nobody, or whoever a certificate names.
        public var userName: String?
        /// Proves who logs in: a password or a token.
        public var password: String?
        /// What the server publishes when the client goes without a word.
        public var will: Will?
        /// When to show the server that the client is alive; its longest interval is CONNECT's keep-alive.
        public var heartbeat: HeartbeatPolicy
        /// When to connect again.
        public var reconnect: ReconnectPolicy
        /// The app's state and the network's.
        public var conditions: DeviceConditions
        /// How long subscribing may take, reconnects included.
        public var requestTimeout: Duration
        /// How long a publication may wait for its acknowledgement, reconnects included.
        public var publishTimeout: Duration
        /// How many unacknowledged messages of QoS 1 and 2 the server may send at once: 1 to 65,535; MQTT 5.0 only.
        public var receiveMaximum: Int
        /// How many topic aliases the server may use; MQTT 5.0 only.
        public var topicAliasMaximum: Int
        /// The longest packet that is accepted from the server, in bytes.
        public var maxPacketBytes: Int
        /// How many messages may wait for the app; above that, those of QoS 0 are dropped.
        public var maxQueuedMessages: Int
        /// How many bytes of messages may wait for the app; above that, those of QoS 0 are dropped.
        public var maxQueuedBytes: Int
        /// Pairs of the application's own for CONNECT; MQTT 5.0 only.
        public var userProperties: [MQTTMessage.UserProperty]

        /// Creates a configuration with the defaults for an app: MQTT 5.0, a clean session.
        public init(server: ServerAddress = ServerAddress(port: 1883), clientID: String = "") {
            self.server = server
            self.clientID = clientID
            version = .v5
            cleanStart = true
            sessionExpiry = .zero
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

        /// CONNECT's keep-alive; 0: none, where the interval is more than it can tell.
        var keepAliveSeconds: UInt16 { UInt16(exactly: heartbeat.longestInterval.wholeSeconds) ?? 0 }
    }

    let driver: ConnectionDriver<MQTTLink>
    let configuration: Configuration

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: how the client behaves.
    ///   - eventLoop: where its connection lives; nil: one of the process's shared loops.
    ///   - logger: where it tells what it does, at debug level; no contents, no secrets.
    /// - Throws: HermesClientError if the TLS options make no sense, or CONNECT cannot be written.
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
            connector: try Connector(
                configuration.server,
                webSocket: configuration.webSocketPath.map { WebSocketTarget(path: $0, subprotocol: "mqtt") }
            ).connect
        )
    }

    deinit { driver.abandon() }

    /// Connects, runs the body, and disconnects at its end, however it ends.
    ///
    /// If the body returns, the message that it got last counts as taken.
    ///
    /// - Throws: what the body throws; HermesClientError if the server refuses or the policy gives up.
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

    /// Connects; from then on the client stays connected until `close`, or until the server ends it for good.
    ///
    /// - Returns: what the server said.
    /// - Throws: HermesClientError if the server refuses (see ``HermesClientError/mqttReason``), or if the policy gives up.
    @discardableResult
    public func connect() async throws -> Connection { try await driver.start() }

    /// What arrives, each once and in order; for one loop of the app's. Ends when the client has stopped.
    ///
    /// A message of QoS 1 or 2 counts as taken, and is acknowledged to the server, when the app asks for the next one.
    public var messages: ClientEvents<MQTTMessage> {
        ClientEvents { await self.driver.nextEvent()?.message }
    }

    /// Counts the connections that were begun: what was published with QoS 0 may be lost where it has changed since.
    package var connectionNumber: UInt64 {
        get async { await driver.attempt }
    }

    /// How many messages of QoS 0 were dropped because too many waited for the app.
    public var droppedMessages: Int {
        get async { await driver.link.dropped }
    }

    /// How many numbered pushes to topics did not arrive: the sum of what ``MQTTMessage/missedPushes`` tells.
    public var missedPushes: UInt64 {
        get async { await driver.link.topics.missed }
    }

    /// The connection's states from now on, the present one first; each call gives a sequence of its own, which ends when
    /// the client stops the next time, or is gone.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// Disconnects; the server does not publish the will. The message that the app got last counts as taken.
    public func close() async { await close(takingLastMessage: true) }

    /// Disconnects; the server does not publish the will.
    ///
    /// - Parameter takingLastMessage: whether the app is done with the message that it got last; if not, one of QoS 1 or 2
    ///   comes again.
    public func close(takingLastMessage: Bool) async { await driver.close(takesLast: takingLastMessage) }

    /// Waits until the client has stopped; closes it if the task is cancelled.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it.
    public func run() async throws { try await driver.run() }
}
