// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A small device: reports whom it belongs to, and gets what is pushed to them.
public final class QSIOPClient: Sendable {
    /// Whom a device belongs to.
    public struct Identity: Hashable, Sendable {
        /// The account.
        public var uid: UInt32
        /// A token of a login; nil where the server believes the uid alone.
        public var token: String?
        /// The account's device; nil: "qsiop".
        public var device: String?

        /// Creates an identity.
        public init(uid: UInt32, token: String? = nil, device: String? = nil) {
            self.uid = uid
            self.token = token
            self.device = device
        }
    }

    /// How a device behaves.
    public struct Configuration: Sendable {
        /// The server's QSIOP port.
        public var server: ServerAddress
        /// Whom the device belongs to; nil: nobody yet, it may only ping.
        public var identity: Identity?
        /// When to show the server that the device is alive.
        public var heartbeat: HeartbeatPolicy
        /// When to connect again.
        public var reconnect: ReconnectPolicy
        /// The app's state and the network's.
        public var conditions: DeviceConditions
        /// How long a request may take.
        public var requestTimeout: Duration

        /// Creates a configuration with the defaults for a device.
        public init(server: ServerAddress = ServerAddress(port: 7979), identity: Identity?) {
            self.server = server
            self.identity = identity
            heartbeat = .qsiop
            reconnect = .standard
            conditions = .shared
            requestTimeout = .seconds(15)
        }
    }

    private let driver: ConnectionDriver<QSIOPLink>
    private let requestTimeout: Duration

    /// Creates a device that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: how the device behaves.
    ///   - eventLoop: where its connection lives; nil: one of the process's shared loops.
    ///   - logger: where it tells what it does.
    /// - Throws: HermesClientError if the TLS options make no sense.
    public init(_ configuration: Configuration, eventLoop: (any EventLoop)? = nil, logger: Logger? = nil) throws {
        let connector = try Connector(configuration.server)
        requestTimeout = configuration.requestTimeout
        driver = ConnectionDriver(
            link: QSIOPLink(identity: configuration.identity),
            eventLoop: eventLoop ?? Connector.defaultEventLoop(),
            heartbeat: configuration.heartbeat,
            reconnect: configuration.reconnect,
            conditions: configuration.conditions,
            logger: logger,
            connector: connector.connect
        )
    }

    deinit { driver.abandon() }

    /// Connects, and reports whom the device belongs to; it comes back by itself until `close`.
    ///
    /// - Throws: HermesClientError if the report is refused, or if the reconnect policy gives up.
    public func connect() async throws { _ = try await driver.start() }

    /// Asks the server for a pong and measures how long it takes.
    public func ping() async throws -> Duration {
        let start = ContinuousClock.now
        _ = try await driver.request(QSIOPFrame(.ping), replay: .never, timeout: requestTimeout)
        return ContinuousClock.now - start
    }

    /// What is pushed, each once; for one loop of the app's. A push counts as taken when the app asks for the next one.
    public var pushes: ClientEvents<QSIOPPush> { ClientEvents { await self.driver.nextEvent() } }

    /// Closes the connection. The push that the app got last counts as taken.
    public func close() async { await close(takingLastPush: true) }

    /// Closes the connection.
    ///
    /// - Parameter takingLastPush: whether the app is done with the push that it got last; if not, it comes again.
    public func close(takingLastPush: Bool) async { await driver.close(takesLast: takingLastPush) }

    /// Waits until the device has stopped; closes it if the task is cancelled.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it.
    public func run() async throws { try await driver.run() }

    /// The connection's states from now on, the present one first; ends when the client stops the next time.
    public var states: AsyncStream<ConnectionState> { driver.states() }
}

/// What was pushed to a device.
public struct QSIOPPush: Hashable, Sendable {
    /// Names the push.
    public var id: String
    /// What it is about; may be empty.
    public var title: String
    /// What it says; may be empty.
    public var body: String
    /// All its keys and values, these three included.
    public var values: [String: String]
}
