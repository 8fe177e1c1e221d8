// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A client of IMPB, the protocol of the mobile apps: logs in, sends, gets each message once, sets up direct links.
public final class IMPBClient: Sendable {
    /// How the server learns what has arrived.
    public enum Acknowledgement: Hashable, Sendable {
        /// The client says so, once the app has taken it.
        case explicit
        /// By any frame that the client sends afterwards, as with the apps of old.
        case implicit
    }

    /// How a client behaves.
    public struct Configuration: Sendable {
        /// The server's IMPB port.
        public var server: ServerAddress
        /// The device that the client runs on.
        public var device: DeviceDescription
        /// How the server learns what has arrived.
        public var acknowledgement: Acknowledgement
        /// One's own address in the local network, for direct links.
        public var localHost: String
        /// One's own UDP port, for direct links.
        public var localPort: Int
        /// When to show the server that the client is alive.
        public var heartbeat: HeartbeatPolicy
        /// When to connect again.
        public var reconnect: ReconnectPolicy
        /// The app's state and the network's.
        public var conditions: DeviceConditions
        /// How long a request may take, reconnects included.
        public var requestTimeout: Duration
        /// How long a message may wait for its receipt, reconnects included.
        public var sendTimeout: Duration

        /// Creates a configuration with the defaults for an app.
        public init(server: ServerAddress = ServerAddress(port: 6969), device: DeviceDescription) {
            self.server = server
            self.device = device
            acknowledgement = .explicit
            localHost = ""
            localPort = 0
            heartbeat = .impb
            reconnect = .standard
            conditions = .shared
            requestTimeout = .seconds(15)
            sendTimeout = .seconds(300)
        }
    }

    private let driver: ConnectionDriver<IMPBLink>
    private let configuration: Configuration

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: how the client behaves.
    ///   - eventLoop: where its connection lives; nil: one of the process's shared loops.
    ///   - logger: where it tells what it does.
    /// - Throws: HermesClientError if the TLS options make no sense.
    public init(_ configuration: Configuration, eventLoop: (any EventLoop)? = nil, logger: Logger? = nil) throws {
        let connector = try Connector(configuration.server)
        self.configuration = configuration
        driver = ConnectionDriver(
            link: IMPBLink(configuration),
            eventLoop: eventLoop ?? Connector.defaultEventLoop(),
            heartbeat: configuration.heartbeat,
            reconnect: configuration.reconnect,
            conditions: configuration.conditions,
            logger: logger,
            connector: connector.connect
        )
    }

    deinit { driver.abandon() }

    /// Connects and logs in; from then on the client stays logged in until `close`, or until the server ends it for good.
    ///
    /// A client that is logged in with another credential is closed first.
    ///
    /// - Throws: HermesClientError if the login is refused, or if the reconnect policy gives up.
    public func logIn(_ credential: Credential) async throws -> IMPBLogin {
        try await driver.start(unless: { $0.isLoggedIn(with: credential) }, prepare: { $0.logIn(credential) })
    }

    /// Sends a text.
    ///
    /// - Parameters:
    ///   - text: what to say; the whole frame is at most 64 KiB.
    ///   - uid: whom to.
    ///   - clientID: makes sending again safe: 1 to 64 bytes; nil: a random one.
    /// - Returns: the receipt, once the server has committed the message.
    /// - Throws: HermesClientError if the server refuses it or the time is up; CancellationError.
    @discardableResult
    public func send(_ text: String, to uid: UInt32, clientID: String? = nil) async throws -> Receipt {
        var content = IMPB_msg_text_content()
        content.text = text
        var message = IMPB_C2C_msg()
        message.to = Int32(clamping: uid)
        message.type = .text
        message.content = try content.wireBytes()
        message.clientID = clientID ?? HermesClient.makeClientID()
        var frame = IMPB_base_msg()
        frame.type = .c2C
        frame.body = try message.wireBytes()
        let answer = try await driver.request(.message(frame), replay: .always, timeout: configuration.sendTimeout)
        return Receipt(try IMPB_Message_receipt(wire: answer))
    }

    /// Reads another account.
    public func account(uid: UInt32) async throws -> Account {
        var request = IMPB_User_info_request()
        request.uid = uid
        let answer = try await ask(try .user(.userInfo, request))
        return Account(try IMPB_User_info_response(wire: answer).userInfo)
    }

    /// Asks for a direct link to another account; they are told.
    ///
    /// - Returns: whether they are there, and both sides' addresses.
    public func requestLink(to uid: UInt32, from ownUID: UInt32) async throws -> IMPBLinkOffer {
        var request = IMPB_p2pconnect_request()
        request.uid = ownUID
        request.targetUid = uid
        let answer = try IMPB_p2pconnect_response(wire: try await ask(try .peer(.connectRequest, request)))
        return IMPBLinkOffer(
            isOnline: answer.isOnline,
            exists: answer.isExit,
            own: IMPBAddress(answer.sponsorIpInfo),
            peer: IMPBAddress(answer.targetIpInfo)
        )
    }

    /// Tells whoever asked for a direct link where one listens.
    ///
    /// - Parameters:
    ///   - host: one's address.
    ///   - port: one's UDP port.
    ///   - ownUID: one's own account.
    ///   - uid: who asked.
    public func postAddress(host: String, port: Int, from ownUID: UInt32, to uid: UInt32) async throws {
        var request = IMPB_p2p_post_ip_request()
        request.sponsorUid = .init(clamping: uid)
        request.uid = .init(clamping: ownUID)
        request.ipInfo.ip = host
        request.ipInfo.port = Int32(clamping: port)
        request.isReady = true
        _ = try await ask(try .peer(.postIp, request))
    }

    /// What happens, each once and in order; for one loop of the app's. A message counts as taken when the app asks for
    /// the next event.
    public var events: ClientEvents<IMPBEvent> { ClientEvents { await self.driver.nextEvent()?.event } }

    /// The connection's states from now on, the present one first; ends when the client stops the next time.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// Closes the connection. The event that the app got last counts as taken.
    public func close() async { await driver.close(takesLast: true) }

    /// Waits until the client has stopped; closes it if the task is cancelled.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it.
    public func run() async throws { try await driver.run() }

    private func ask(_ request: IMPBLink.Request) async throws -> [UInt8] {
        try await driver.request(request, replay: .always, timeout: configuration.requestTimeout)
    }
}
