// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire
public import Logging
public import NIOCore
import SwiftProtobuf

/// A client of IMPB, the protocol of the mobile apps. It logs in, sends messages, receives each message once, and sets
/// up direct links.
public final class IMPBClient: Sendable {
    /// The way in which the client acknowledges messages.
    public enum Acknowledgement: Hashable, Sendable {
        /// With a separate frame, after the app has taken the message.
        case explicit
        /// With any later frame that the client sends, as the old apps do.
        case implicit
    }

    /// A client's settings.
    public struct Configuration: Sendable {
        /// The server's IMPB port.
        public var server: ServerAddress
        /// The device that the client runs on.
        public var device: DeviceDescription
        /// The way in which the client acknowledges messages.
        public var acknowledgement: Acknowledgement
        /// The device's address in the local network, for direct links.
        public var localHost: String
        /// The device's UDP port, for direct links.
        public var localPort: Int
        /// When to send heartbeats.
        public var heartbeat: HeartbeatPolicy
        /// When to reconnect.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network.
        public var conditions: DeviceConditions
        /// The time limit of a request, including reconnects.
        public var requestTimeout: Duration
        /// The time limit for a message's receipt, including reconnects.
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
    ///   - configuration: the client's settings.
    ///   - eventLoop: the event loop of the connection; nil for one of the process's shared loops.
    ///   - logger: gets log messages at debug level.
    /// - Throws: HermesClientError if the TLS options are invalid.
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

    /// Connects and logs in. From then on the client stays logged in until `close`, or until the server permanently
    /// ends the login.
    ///
    /// If the client is logged in with another credential, it closes that login first.
    ///
    /// - Throws: HermesClientError if the login is refused, or if the reconnect policy allows no further try.
    public func logIn(_ credential: Credential) async throws -> IMPBLogin {
        try await driver.start(unless: { $0.isLoggedIn(with: credential) }, prepare: { $0.logIn(credential) })
    }

    /// Sends a text.
    ///
    /// - Parameters:
    ///   - text: the text; the whole frame is at most 64 KiB.
    ///   - uid: the recipient.
    ///   - clientID: the client's id for the message, 1 to 64 bytes; nil for a random id. If the app sends the
    ///     message again with the same id, the message arrives only once.
    /// - Returns: the receipt, after the server has committed the message.
    /// - Throws: HermesClientError if the server refuses the message, or if the timeout passes; CancellationError.
    @discardableResult
    public func send(_ text: String, to uid: UserID, clientID: String? = nil) async throws -> Receipt {
        try await send(.text(text), to: uid, clientID: clientID)
    }

    /// Sends content of any kind that IMPB can carry. The data of custom content must be text.
    ///
    /// - Parameters:
    ///   - content: the content; the whole frame is at most 64 KiB.
    ///   - uid: the recipient.
    ///   - clientID: the client's id for the message, 1 to 64 bytes; nil for a random id. If the app sends the
    ///     message again with the same id, the message arrives only once.
    /// - Returns: the receipt, after the server has committed the message.
    /// - Throws: HermesClientError if IMPB cannot carry the content, if the server refuses the message, or if the
    ///   timeout passes; CancellationError.
    @discardableResult
    public func send(_ content: MessageContent, to uid: UserID, clientID: String? = nil) async throws -> Receipt {
        var message = IMPB_C2C_msg()
        message.to = Int32(clamping: uid.rawValue)
        (message.type, message.content) = try content.impb()
        message.clientID = clientID ?? HermesClient.makeClientID()
        return try await send(.c2C, message)
    }

    /// Sends content to a group, as ``send(_:to:clientID:)-(MessageContent,_,_)`` does to an account.
    @discardableResult
    public func send(_ content: MessageContent, toGroup id: GroupID, clientID: String? = nil) async throws -> Receipt {
        var message = IMPB_Group_msg()
        message.groupID = Int32(clamping: id.rawValue)
        (message.type, message.content) = try content.impb()
        message.clientID = clientID ?? HermesClient.makeClientID()
        return try await send(.group, message)
    }

    /// Sends content to everyone who is connected over IMPB, including this device. The server does not store it, and
    /// the client does not send it again after a lost connection.
    ///
    /// - Throws: HermesClientError `.forbidden` if the server's rules do not let this account publish to
    ///   `impb/broadcast`.
    public func broadcast(_ content: MessageContent) async throws {
        var message = IMPB_C2C_msg()
        (message.type, message.content) = try content.impb()
        try await sendOnce(.broadcast, try message.wireBytes())
    }

    /// Sends application-defined bytes to the application's back end, which subscribes to the topic
    /// `impb/UID/DEVICE/custom`. The client does not send the bytes again after a lost connection.
    ///
    /// - Parameter bytes: the bytes; at most 32 KiB.
    /// - Throws: HermesClientError `.notFound` if nobody is subscribed.
    public func sendCustom(_ bytes: [UInt8]) async throws { try await sendOnce(.custom, bytes) }

    private func sendOnce(_ type: IMPB_base_msg.TypeEnum, _ body: [UInt8]) async throws {
        var frame = IMPB_base_msg()
        frame.type = type
        frame.body = Self.contiguous(body)
        _ = try await driver.request(.message(frame), replay: .never, timeout: configuration.requestTimeout)
    }

    private static func contiguous<Bytes: SwiftProtobufContiguousBytes>(_ bytes: [UInt8]) -> Bytes { Bytes(bytes) }

    private func send(_ type: IMPB_base_msg.TypeEnum, _ message: some SwiftProtobuf.Message) async throws -> Receipt {
        var frame = IMPB_base_msg()
        frame.type = type
        frame.body = try message.wireBytes()
        let answer = try await driver.request(.message(frame), replay: .always, timeout: configuration.sendTimeout)
        return Receipt(try IMPB_Message_receipt(wire: answer, maxParts: nil))
    }

    /// Fetches another account.
    public func account(id: UserID) async throws -> Account {
        var request = IMPB_User_info_request()
        request.uid = id.rawValue
        let answer = try await ask(try .user(.userInfo, request))
        return Account(try IMPB_User_info_response(wire: answer, maxParts: nil).userInfo)
    }

    /// Asks another account for a direct link.
    ///
    /// - Returns: whether the account exists and is online, and the addresses of both sides.
    public func requestLink(to uid: UserID, from ownUID: UserID) async throws -> IMPBLinkOffer {
        var request = IMPB_p2pconnect_request()
        request.uid = ownUID.rawValue
        request.targetUid = uid.rawValue
        let reply = try await ask(try .peer(.connectRequest, request))
        let answer = try IMPB_p2pconnect_response(wire: reply, maxParts: nil)
        return IMPBLinkOffer(
            isOnline: answer.isOnline,
            exists: answer.isExit,
            own: IMPBAddress(answer.sponsorIpInfo),
            peer: IMPBAddress(answer.targetIpInfo)
        )
    }

    /// Sends this device's address to the account that asked for a direct link.
    ///
    /// - Parameters:
    ///   - host: this device's address.
    ///   - port: this device's UDP port.
    ///   - ownUID: this account.
    ///   - uid: the account that asked.
    public func postAddress(host: String, port: Int, from ownUID: UserID, to uid: UserID) async throws {
        var request = IMPB_p2p_post_ip_request()
        request.sponsorUid = .init(clamping: uid.rawValue)
        request.uid = .init(clamping: ownUID.rawValue)
        request.ipInfo.ip = host
        request.ipInfo.port = Int32(clamping: port)
        request.isReady = true
        _ = try await ask(try .peer(.postIp, request))
    }

    /// The client's events, each once and in order. Only one loop may read them. An event counts as taken when the app
    /// asks for the next event.
    public var events: ClientEvents<IMPBEvent> { ClientEvents { await self.driver.nextEvent()?.event } }

    /// The connection's states from now on, beginning with the present state. The stream ends when the client next
    /// stops.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// Closes the connection. The last event counts as taken.
    public func close() async { await driver.close(takesLast: true) }

    /// Waits until the client has stopped. If the task is cancelled, this function closes the client. The last event
    /// then arrives again after the next login.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client.
    public func run() async throws { try await driver.run() }

    private func ask(_ request: IMPBLink.Request) async throws -> [UInt8] {
        try await driver.request(request, replay: .always, timeout: configuration.requestTimeout)
    }
}
