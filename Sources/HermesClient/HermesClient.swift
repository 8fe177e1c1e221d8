// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
public import NIOCore

/// A chat client: logs in, sends, and gives the app each message once and in order, over connections that come and go.
///
/// ```swift
/// let configuration = HermesClient.Configuration(device: DeviceDescription(id: "ann-laptop"))
/// try await HermesClient.withClient(configuration, .password(nickName: "ann", password: "…")) { client, session in
///     let bob = try await client.account(named: "bob")
///     try await client.send("hello", to: .user(uid: bob.uid))
///     for await event in client.events {
///         if case .message(let message) = event { print(message.fromNickName, message.text ?? "") }
///     }
/// }
/// ```
///
/// The client connects again by itself. What was sent and not acknowledged is sent again under the same client id, so
/// that it arrives once; what came meanwhile follows from the inbox.
public final class HermesClient: Sendable {
    /// How a client behaves.
    public struct Configuration: Sendable {
        /// The server's Delimited port; its HTTP port with a ``webSocketPath``.
        public var server: ServerAddress
        /// The path of the server's WebSocket, "/ws" as a rule; nil: no WebSocket.
        public var webSocketPath: String?
        /// The device that the client runs on.
        public var device: DeviceDescription
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
        /// What the app kept of an earlier run; nil: the server's record of the device counts. Not needed with a ``store``.
        public var cursor: Cursor?
        /// Where the client keeps what must outlive it: the ``HermesClient/outbox``, the cursor, the last entries. Nil:
        /// nowhere, so that what waits in the outbox ends with the client.
        public var store: (any LocalStore)?
        /// How much the ``HermesClient/outbox`` holds.
        public var outboxLimits: OutboxLimits
        /// How many of the entries that the app has taken the ``store`` keeps, for ``HermesClient/recentEvents``.
        public var maxRecentEvents: Int
        /// How long the answer to a login is awaited before the connection is given up.
        public var loginTimeout: Duration
        /// How often the client tells the server how deliveries and connections went, per kind of network; nil: never.
        public var statisticsInterval: Duration?
        /// The longest frame that is accepted from the server, in bytes.
        public var maxFrameBytes: Int

        /// Creates a configuration with the defaults for an app.
        public init(server: ServerAddress = ServerAddress(port: 9000), device: DeviceDescription) {
            self.server = server
            self.device = device
            webSocketPath = nil
            heartbeat = .delimited
            reconnect = .standard
            conditions = .shared
            requestTimeout = .seconds(15)
            sendTimeout = .seconds(300)
            cursor = nil
            store = nil
            outboxLimits = OutboxLimits()
            maxRecentEvents = 100
            loginTimeout = .seconds(10)
            statisticsInterval = .seconds(900)
            maxFrameBytes = 4 * 1_048_576
        }

        /// Creates a configuration for a server's WebSocket, with the defaults for an app.
        ///
        /// - Parameters:
        ///   - webSocket: `wss://host[:port][/path]`, or `ws://` without encryption; the port is 443 or 80 and the path
        ///     `/ws` unless told.
        ///   - device: the device that the client runs on.
        /// - Returns: nil if the text is no such address.
        public init?(webSocket: String, device: DeviceDescription) {
            guard let (server, path) = ServerAddress.ofWebSocket(webSocket) else { return nil }
            self.init(server: server, device: device)
            webSocketPath = path
        }
    }

    /// What is sent whenever there is a connection.
    public let outbox: Outbox

    let driver: ConnectionDriver<DelimitedLink>
    let configuration: Configuration
    private let journal: InboxJournal?

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: how the client behaves.
    ///   - eventLoop: where its connection lives; nil: one of the process's shared loops.
    ///   - logger: where it tells what it does, at debug level; no contents, no secrets.
    /// - Throws: HermesClientError if the TLS options make no sense, or what the store throws if it cannot be read.
    public init(
        _ configuration: Configuration,
        eventLoop: (any EventLoop)? = nil,
        logger: Logger? = nil
    ) throws {
        let connector = try Connector(
            configuration.server,
            webSocket: configuration.webSocketPath.map { WebSocketTarget(path: $0, subprotocol: "hermes.v1") }
        )
        self.configuration = configuration
        let store = configuration.store ?? MemoryLocalStore()
        let records = try store.records()
        journal = configuration.store.map {
            InboxJournal(store: $0, records: records, maxEntries: configuration.maxRecentEvents)
        }
        driver = ConnectionDriver(
            link: DelimitedLink(
                device: configuration.device,
                cursor: configuration.cursor,
                maxFrameBytes: configuration.maxFrameBytes,
                statisticsInterval: configuration.statisticsInterval
            ),
            eventLoop: eventLoop ?? Connector.defaultEventLoop(),
            heartbeat: configuration.heartbeat,
            reconnect: configuration.reconnect,
            conditions: configuration.conditions,
            loginTimeout: configuration.loginTimeout,
            logger: logger,
            connector: connector.connect
        )
        outbox = Outbox(
            driver: driver,
            store: store,
            records: records,
            journal: journal,
            limits: configuration.outboxLimits,
            sendTimeout: configuration.sendTimeout
        )
    }

    /// Logs in, runs the body, and closes the connection at its end, however it ends.
    ///
    /// If the body returns, the event that it got last counts as taken; if it throws, that event comes again.
    ///
    /// - Throws: what the body throws; HermesClientError if the login is refused or the policy gives up.
    public nonisolated(nonsending) static func withClient<Result>(
        _ configuration: Configuration,
        _ credential: Credential,
        logger: Logger? = nil,
        _ body: nonisolated(nonsending) (HermesClient, Session) async throws -> Result
    ) async throws -> Result {
        let client = try HermesClient(configuration, logger: logger)
        do {
            let session = try await client.logIn(credential)
            let result = try await body(client, session)
            await client.close()
            return result
        } catch {
            await client.driver.close(takesLast: false)
            throw error
        }
    }

    deinit { driver.abandon() }

    /// Connects and logs in; from then on the client stays logged in until `close`, or until the server ends it for good.
    ///
    /// A client that is logged in with another credential is closed first: nothing of one account goes to another. What the
    /// app had not taken of its inbox comes again when it logs in again.
    ///
    /// - Returns: the session; its token is for the next login.
    /// - Throws: HermesClientError if the login is refused, or if the reconnect policy gives up.
    public func logIn(_ credential: Credential) async throws -> Session {
        if await !driver.isStarted(with: credential) { await outbox.halt() }
        let outgoing = await outbox.clientIDs
        let prepare: @Sendable (inout DelimitedLink) -> Void = { [configuration, journal, outbox] link in
            link.logIn(credential)
            link.outgoing = outgoing
            link.loggedIn = { [weak outbox] session in outbox?.loggedIn(uid: session.uid) }
            link.tellStopped = { [weak outbox] in outbox?.clientStopped() }
            guard let journal else { return }
            if let unsent = journal.takeStatistics() { link.statistics.counter.restore(unsent) }
            let isCertain = journal.account?.owns(credential) ?? true
            let cursor = configuration.cursor ?? journal.cursor
            link.resume(cursor, of: journal.account?.uid, isCertain: isCertain, recent: journal.recent) {
                journal.rewind(to: $0)
            }
            link.remember(unanswered: journal.logins) { journal.keep(unanswered: $0) }
        }
        let session = try await driver.start(unless: { $0.isLoggedIn(with: credential) }, prepare: prepare)
        await journal?.loggedIn(session)
        await outbox.started(uid: session.uid)
        return session
    }

    /// Waits until the client has stopped; closes it if the task is cancelled.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it.
    public func run() async throws {
        do {
            try await driver.waitUntilStopped()
        } catch is CancellationError {
            await close()
        }
    }

    /// Waits until the client has stopped, and leaves it as it is if the task is cancelled: for who has to say what became of
    /// the last event when it closes.
    ///
    /// - Throws: HermesClientError that tells why it stopped, unless the app closed it; CancellationError.
    package func stopped() async throws { try await driver.waitUntilStopped() }

    /// Closes the connection. The event that the app got last counts as taken.
    public func close() async {
        await close(takingLastEvent: true)
    }

    /// Closes the connection.
    ///
    /// - Parameter takingLastEvent: whether the app is done with the event that it got last; if not, it comes again.
    public func close(takingLastEvent: Bool) async {
        var isKept = takingLastEvent
        if takingLastEvent { isKept = await keepLastEvent() }
        await driver.close(takesLast: isKept)
        if let journal, let unsent = await driver.unsentStatistics() { await journal.keep(unsent) }
    }

    /// The session of the last login; nil before the first.
    public var session: Session? {
        get async { await driver.session }
    }

    /// Up to where the app has taken the inbox; nil before the first login.
    public var cursor: Cursor? {
        get async {
            let inbox = await driver.link.inbox
            return inbox.epoch == 0 ? nil : Cursor(epoch: inbox.epoch, seq: inbox.taken)
        }
    }

    /// The connection's states from now on, the present one first; each call gives a sequence of its own, which ends when
    /// the client stops the next time, or is gone.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// What happens, each once and in order; for one loop of the app's. Ends when the client has stopped.
    ///
    /// An inbox entry counts as taken, and is acknowledged to the server, when the app asks for the next one.
    public var events: ClientEvents<InboxEvent> {
        ClientEvents {
            let isKept = await self.keepLastEvent()
            return await self.driver.nextEvent(takesLast: isKept)?.event
        }
    }

    /// The last inbox entries that the app took, in this run and those before, oldest first; none without a store.
    public var recentEvents: [InboxEvent] { journal?.recent ?? [] }

    /// Why what the app took could not be written to the ``Configuration/store``; nil: it could. Meanwhile it is not
    /// acknowledged to the server either, so that it comes again after a restart of the app, and nothing is lost.
    public var storeError: HermesClientError? { journal?.failure }

    /// Writes down that the app has taken the event that it got last: before the server may forget it.
    ///
    /// - Returns: false if it could not be written.
    private func keepLastEvent() async -> Bool {
        guard let journal, let last = await driver.lastEvent() else { return true }
        return await journal.taken(last.event, of: last.session, isCurrent: last.isCurrent)
    }
}

extension ConnectionDriver where Link == DelimitedLink {
    /// What the server is not known to have of what was counted; taken out.
    func unsentStatistics() -> Hermes_V1_Statistics? {
        let unsent = link.statistics.counter.unsent(appVersion: link.statistics.appVersion)
        link.statistics.counter = DeliveryCounter()
        return unsent
    }

    /// What the app got last and may be done with, of whose inbox it is, and whether it has a place there still.
    func lastEvent() -> (event: DelimitedLink.Event, session: Session, isCurrent: Bool)? {
        guard let handedOver, let session, handedOver.seq > 0 else { return nil }
        return (handedOver, session, link.isCurrent(handedOver))
    }

    /// Whether the client is logged in with this credential, or about to be.
    func isStarted(with credential: Credential) -> Bool {
        switch machine.state {
        case .idle, .stopped, .lost(_, next: .stop): false
        case .connecting, .authenticating, .live, .lost, .waiting: link.isLoggedIn(with: credential)
        }
    }
}
