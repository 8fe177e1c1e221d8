// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire
public import Logging
public import NIOCore

/// A client of QSIOP, for a small device. It reports its account, and receives the pushes for this account.
public final class QSIOPClient: Sendable {
    /// The account that a device reports.
    public struct Identity: Hashable, Sendable {
        /// The account.
        public var uid: UserID
        /// A token from a login; nil if the server accepts the uid alone.
        public var token: String?
        /// The device's id; nil for "qsiop".
        public var device: String?

        /// Creates an identity.
        public init(uid: UserID, token: String? = nil, device: String? = nil) {
            self.uid = uid
            self.token = token
            self.device = device
        }
    }

    /// A device's settings.
    public struct Configuration: Sendable {
        /// The server's QSIOP port.
        public var server: ServerAddress
        /// The account that the device reports; nil if the device reports no account and can only ping.
        public var identity: Identity?
        /// When to send heartbeats.
        public var heartbeat: HeartbeatPolicy
        /// When to reconnect.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network.
        public var conditions: DeviceConditions
        /// The time limit of a request.
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
    ///   - configuration: the device's settings.
    ///   - eventLoop: the event loop of the connection; nil for one of the process's shared loops.
    ///   - logger: gets log messages at debug level.
    /// - Throws: HermesClientError if the TLS options are invalid.
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

    /// Connects and reports the account. The device reconnects by itself until `close`.
    ///
    /// - Throws: HermesClientError if the report is refused, or if the reconnect policy allows no further try.
    public func connect() async throws { _ = try await driver.start() }

    /// Pings the server and returns the round-trip time.
    public func ping() async throws -> Duration {
        let start = ContinuousClock.now
        _ = try await driver.request(QSIOPFrame(.ping), replay: .never, timeout: requestTimeout)
        return ContinuousClock.now - start
    }

    /// The pushes that arrive, each once. Only one loop may read them. A push counts as taken when the app asks for the
    /// next push.
    public var pushes: ClientEvents<QSIOPPush> { ClientEvents { await self.driver.nextEvent() } }

    /// Closes the connection. The last push counts as taken.
    public func close() async { await close(takingLastPush: true) }

    /// Closes the connection.
    ///
    /// - Parameter takingLastPush: whether the app is done with the last push. If not, the push arrives again.
    public func close(takingLastPush: Bool) async { await driver.close(takesLast: takingLastPush) }

    /// Waits until the device has stopped. If the task is cancelled, this function closes the device. The last push
    /// then arrives again.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the device.
    public func run() async throws { try await driver.run() }

    /// The connection's states from now on, beginning with the present state. The stream ends when the device next
    /// stops.
    public var states: AsyncStream<ConnectionState> { driver.states() }
}
