// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A viewer of a LiveRoom: joins, talks, gives, and gets what the others do.
///
/// Rooms are live: what happens while there is no connection is missed. The client joins again by itself.
public final class LiveRoomClient: Sendable {
    /// How a viewer behaves.
    public struct Configuration: Sendable {
        /// The server's LiveRoom port.
        public var server: ServerAddress
        /// How one appears to the others; nil: joins without a word, and may only watch.
        public var user: RoomUser?
        /// The room, where the port has several; nil: the port's own.
        public var room: String?
        /// Binds the connection to an account: a token of a login; nil: anonymous.
        public var token: String?
        /// The account's device; nil: "liveroom".
        public var device: String?
        /// When to show the server that the viewer is there.
        public var heartbeat: HeartbeatPolicy
        /// When to connect again.
        public var reconnect: ReconnectPolicy
        /// The app's state and the network's.
        public var conditions: DeviceConditions
        /// The longest frame that is accepted, in bytes.
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
    ///   - configuration: how the viewer behaves.
    ///   - eventLoop: where its connection lives; nil: one of the process's shared loops.
    ///   - logger: where it tells what it does.
    /// - Throws: HermesClientError if the TLS options make no sense.
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

    /// Connects and joins; the viewer comes back by itself until `leave` or `close`.
    ///
    /// - Throws: HermesClientError if the reconnect policy gives up.
    public func join() async throws { _ = try await driver.start() }

    /// Says something; everyone gets it, the sender included.
    ///
    /// - Throws: HermesClientError if one only watches, or the connection is lost.
    public func say(_ text: String) async throws {
        var message = LiveRoom_ChatMessage()
        message.user = try talker()
        message.text = text
        try await driver.send(try LiveRoomFrame(type: .text, message: message))
    }

    /// Gives something; everyone sees it, the sender included.
    ///
    /// - Throws: HermesClientError if one only watches, or the connection is lost.
    public func give(_ gift: String, count: Int32 = 1, url: String = "") async throws {
        var message = LiveRoom_GiftMessage()
        message.user = try talker()
        message.giftname = gift
        message.giftcount = count
        message.giftURL = url
        try await driver.send(try LiveRoomFrame(type: .gift, message: message))
    }

    /// Sends a frame of the application's own.
    ///
    /// - Parameters:
    ///   - type: 16 to 65,535.
    ///   - data: the body.
    public func sendCustom(type: UInt16, data: [UInt8]) async throws {
        try await driver.send(
            try LiveRoomFrame(type: LiveRoomFrameType(rawValue: type), body: ByteBuffer(bytes: data))
        )
    }

    /// Tells the others that one leaves, and closes.
    public func leave() async {
        if let user, let frame = try? LiveRoomFrame(type: .leave, message: user.liveRoom) {
            await driver.sendIfLive(frame)
        }
        await close()
    }

    /// Closes the connection without a word.
    public func close() async { await driver.close(takesLast: true) }

    /// Waits until the viewer has stopped; closes it if the task is cancelled.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it.
    public func run() async throws { try await driver.run() }

    /// What happens in the room; for one loop of the app's. A loop that is too slow misses the newest.
    public var events: ClientEvents<RoomEvent> { ClientEvents { await self.driver.nextEvent() } }

    /// The connection's states from now on, the present one first; ends when the client stops the next time.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    private func talker() throws -> LiveRoom_UserInfo {
        guard let user else { throw HermesClientError(.closed, "who only watches cannot talk: give a name") }
        return user.liveRoom
    }
}
