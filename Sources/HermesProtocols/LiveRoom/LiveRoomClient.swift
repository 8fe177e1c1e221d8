// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire
public import Logging
public import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A viewer of a LiveRoom. It joins the room, sends texts and gifts, and gets the texts and gifts of the other
/// viewers.
///
/// Rooms are live: a viewer does not get the events that happen while it is not connected. After a lost connection,
/// the viewer joins again by itself.
public final class LiveRoomClient: Sendable {
    /// A viewer's settings.
    public struct Configuration: Sendable {
        /// The server's LiveRoom port.
        public var server: ServerAddress
        /// The viewer as the others see it; nil for a silent viewer, which can only watch.
        public var user: RoomUser?
        /// The room, if the port serves several rooms; nil for the port's default room.
        public var room: String?
        /// The token of the account with which the viewer enters; nil if the viewer is anonymous.
        public var token: String?
        /// The id of the account's device; nil for "liveroom".
        public var device: String?
        /// When to send heartbeats.
        public var heartbeat: HeartbeatPolicy
        /// When to reconnect.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network.
        public var conditions: DeviceConditions
        /// The longest accepted body of a frame, in bytes.
        public var maxFrameBytes: Int

        /// Creates a configuration with the defaults for an app.
        public init(server: ServerAddress = ServerAddress(port: 9898), user: RoomUser?, room: String? = nil) {
            self.server = server
            self.user = user
            self.room = room
            token = nil
            device = nil
            heartbeat = .liveRoom
            reconnect = .standard
            conditions = .shared
            maxFrameBytes = 1_048_576
        }
    }

    private let driver: ConnectionDriver<LiveRoomLink>
    private let user: RoomUser?

    /// Creates a viewer that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: the viewer's settings.
    ///   - eventLoop: the event loop of the connection; nil for one of the process's shared loops.
    ///   - logger: gets log messages at debug level.
    /// - Throws: HermesClientError if the TLS options are invalid.
    public init(_ configuration: Configuration, eventLoop: (any EventLoop)? = nil, logger: Logger? = nil) throws {
        let connector = try Connector(configuration.server)
        user = configuration.user
        driver = ConnectionDriver(
            link: LiveRoomLink(
                room: configuration.room,
                token: configuration.token,
                device: configuration.device,
                user: configuration.user,
                maxFrameBytes: configuration.maxFrameBytes
            ),
            eventLoop: eventLoop ?? Connector.defaultEventLoop(),
            heartbeat: configuration.heartbeat,
            reconnect: configuration.reconnect,
            conditions: configuration.conditions,
            logger: logger,
            connector: connector.connect
        )
    }

    deinit { driver.abandon() }

    /// Connects and joins the room. The viewer reconnects by itself until `leave` or `close`.
    ///
    /// - Throws: HermesClientError if the reconnect policy allows no further try.
    public func join() async throws { _ = try await driver.start() }

    /// Sends a text to the room. Everyone in the room gets it, including the sender.
    ///
    /// - Throws: HermesClientError if the viewer is silent, or if the connection is lost.
    public func say(_ text: String) async throws {
        var message = LiveRoom_ChatMessage()
        message.user = try talker()
        message.text = text
        try await driver.send(try LiveRoomFrame(type: .text, message: message))
    }

    /// Gives a gift. Everyone in the room sees it, including the sender.
    ///
    /// - Throws: HermesClientError if the viewer is silent, or if the connection is lost.
    public func give(_ gift: String, count: Int = 1, url: URL? = nil) async throws {
        var message = LiveRoom_GiftMessage()
        message.user = try talker()
        message.giftname = gift
        message.giftcount = Int32(clamping: count)
        message.giftURL = url?.absoluteString ?? ""
        try await driver.send(try LiveRoomFrame(type: .gift, message: message))
    }

    /// Sends a frame of an application-defined type.
    ///
    /// - Parameters:
    ///   - type: the type, 16 to 65,535.
    ///   - data: the body of the frame.
    public func sendCustom(type: UInt16, data: [UInt8]) async throws {
        try await driver.send(
            try LiveRoomFrame(type: LiveRoomFrameType(rawValue: type), body: ByteBuffer(bytes: data))
        )
    }

    /// Tells the other viewers that this viewer leaves the room, and closes the connection.
    public func leave() async {
        if let user, let frame = try? LiveRoomFrame(type: .leave, message: user.liveRoom) {
            await driver.sendIfLive(frame)
        }
        await close()
    }

    /// Closes the connection without sending a leave frame.
    public func close() async { await driver.close(takesLast: true) }

    /// Waits until the viewer has stopped. If the task is cancelled, this function closes the viewer.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the viewer.
    public func run() async throws { try await driver.run() }

    /// The room's events. Only one loop may read them. If the loop is too slow, the newest events are dropped.
    public var events: ClientEvents<RoomEvent> { ClientEvents { await self.driver.nextEvent() } }

    /// The connection's states from now on, beginning with the present state. The stream ends when the viewer next
    /// stops.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    private func talker() throws -> LiveRoom_UserInfo {
        guard let user else { throw HermesClientError(.closed, "a viewer without a name cannot send: set user") }
        return user.liveRoom
    }
}
