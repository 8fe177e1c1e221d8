// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
public import Logging
import NIOConcurrencyHelpers
public import NIOCore

/// A chat client: it logs in, sends messages, and gives the app each message once and in order, even if connections
/// break.
///
/// ```swift
/// let configuration = HermesClient.Configuration(device: DeviceDescription(id: "ann-laptop"))
/// try await HermesClient.withClient(configuration, .password(nickName: "ann", password: "…")) { client, session in
///     let bob = try await client.account(named: "bob")
///     try await client.send("hello", to: .user(bob.uid))
///     for await event in client.events {
///         if let message = event.message { print(message.fromNickName, message.text ?? "") }
///     }
/// }
/// ```
///
/// The client reconnects by itself. It then repeats each message that has no receipt yet, under the message's client
/// id, so that the message arrives only once. It also fetches the inbox entries that it has not received.
public final class HermesClient: Sendable {
    /// A client's settings.
    public struct Configuration: Sendable {
        /// The server's address. The port is the server's Delimited port, its MQTT port or, for a WebSocket, its HTTP
        /// port.
        public var server: ServerAddress
        /// The device that the client runs on.
        public var device: DeviceDescription
        /// The policy for heartbeats. By default, the client sends a heartbeat after 120 s of silence. It tries three
        /// times, and waits 8 s for each answer.
        public var heartbeat: HeartbeatPolicy
        /// The policy for reconnecting.
        public var reconnect: ReconnectPolicy
        /// The state of the app and of the network: ``DeviceConditions/shared``, except in tests.
        package var conditions: DeviceConditions
        /// The time limit for a request, including the time for reconnects.
        public var requestTimeout: Duration
        /// The cursor of an earlier run. If it is nil, the client continues after the last entry that the server has
        /// recorded as acknowledged by this device. A client with a ``store`` keeps the cursor there.
        package var cursor: Cursor?
        /// The store for the data that must outlive the client: the ``HermesClient/outbox``, the cursor in the inbox,
        /// and the last entries. Without a store, no data outlives the client.
        public var store: FileLocalStore? {
            get { localStore as? FileLocalStore }
            set { localStore = newValue }
        }
        /// The ``store``, or in tests a store of another type.
        package var localStore: (any LocalStore)?
        /// The limits of the ``HermesClient/outbox``.
        package var outboxLimits: OutboxLimits
        /// The number of taken entries that the ``store`` keeps, for ``HermesClient/recentEvents``.
        package var maxRecentEvents: Int
        /// The time to wait for the answer to a login before the client closes the connection.
        package var loginTimeout: Duration
        /// The interval at which the client uploads its counts of deliveries and connections. If it is nil, the client
        /// uploads none.
        public var statisticsInterval: Duration?
        /// The longest frame accepted from the server, in bytes.
        package var maxFrameBytes: Int

        /// Creates a configuration with the defaults for an app.
        public init(server: ServerAddress = ServerAddress(port: 9000), device: DeviceDescription) {
            self.server = server
            self.device = device
            heartbeat = .delimited
            reconnect = .standard
            conditions = .shared
            requestTimeout = .seconds(15)
            cursor = nil
            localStore = nil
            outboxLimits = OutboxLimits()
            maxRecentEvents = 100
            loginTimeout = .seconds(10)
            statisticsInterval = .seconds(900)
            maxFrameBytes = 4 * 1_048_576
        }
    }

    /// The messages that the app has sent and that the server has not committed yet.
    public let outbox: Outbox

    let driver: ConnectionDriver<DelimitedLink>
    let configuration: Configuration
    private let journal: InboxJournal?
    private let unkept = NIOLockedValueBox(Unkept())
    private static let storeRetryDelay = TimeAmount.seconds(2)
    let ephemeral = Broadcast<EphemeralEvent>()

    /// Creates a client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: the client's settings.
    ///   - eventLoop: the event loop of the client's connection. If it is nil, the client uses one of the process's
    ///     shared event loops.
    ///   - logger: the logger that gets log messages at debug level, without message contents or secrets.
    /// - Throws: HermesClientError if the TLS options are invalid; the store's error if the store cannot be read.
    public init(
        _ configuration: Configuration,
        eventLoop: (any EventLoop)? = nil,
        logger: Logger? = nil
    ) throws {
        let connector = try Connector(
            configuration.server,
            subprotocol: configuration.server.usesMQTT ? "mqtt" : "hermes.v1"
        )
        self.configuration = configuration
        let store = configuration.localStore ?? MemoryLocalStore()
        let records = try store.records()
        journal = configuration.localStore.map {
            InboxJournal(store: $0, records: records, maxEntries: configuration.maxRecentEvents)
        }
        driver = ConnectionDriver(
            link: DelimitedLink(
                device: configuration.device,
                cursor: configuration.cursor,
                maxFrameBytes: configuration.maxFrameBytes,
                statisticsInterval: configuration.statisticsInterval,
                carrier: configuration.carrier
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
            limits: configuration.outboxLimits
        )
        journal?.whenWriteFailed { [weak self] in self?.keepLater() }
    }

    /// Logs in, runs the body, and then closes the connection, even if the body throws.
    ///
    /// If the body returns, the last event that it got counts as taken. If the body throws, that event is delivered
    /// again after the next login.
    ///
    /// - Throws: the body's error; HermesClientError if the server refuses the login, or if the reconnect policy allows
    ///   no further try.
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

    deinit {
        driver.abandon()
        ephemeral.close()
    }

    /// Connects and logs in. From then on the client reconnects and logs in by itself, until the app calls `close`, the
    /// server ends the login permanently, or the reconnect policy allows no further try.
    ///
    /// If the client is logged in with another credential, it ends that login first. Inbox entries that the app had
    /// not taken are delivered again when their account logs in again.
    ///
    /// - Returns: the session, whose token can be used for the next login.
    /// - Throws: HermesClientError if the server refuses the login, or if the reconnect policy allows no further try.
    public func logIn(_ credential: Credential) async throws -> Session {
        let prepare: @Sendable (inout DelimitedLink) -> Void = { [configuration, journal, outbox, ephemeral] link in
            // The outbox and the driver share this event loop, so neither another login nor a new message can
            // intervene.
            link.outgoing = outbox.assumeIsolated { outbox in
                outbox.halt(for: credential)
                return outbox.clientIDs
            }
            let isCertain = journal?.account?.owns(credential) ?? true
            link.logIn(credential)
            link.ephemeral = ephemeral
            ephemeral.open()
            link.loggedIn = { [weak outbox] session in
                // The login may succeed after the app has stopped waiting for it.
                journal?.loggedIn(session)
                outbox?.loggedIn(session)
            }
            link.tellStopped = { [weak outbox] in outbox?.clientStopped() }
            guard let journal else { return }
            if let unsent = journal.takeStatistics() { link.statistics.counter.restore(unsent) }
            // If the account is unknown, the inbox that the cursor belongs to is also unknown.
            let cursor = configuration.cursor ?? (journal.account == nil ? nil : journal.cursor)
            link.resume(
                cursor,
                newest: cursor == journal.cursor ? journal.newest : nil,
                of: journal.account?.uid,
                isCertain: isCertain,
                recent: journal.recent,
                owesReset: journal.account != nil && journal.owesReset
            ) { place, newest, uid, isReset in
                if isReset { journal.reset(to: place, of: uid) } else { journal.passed(place, newest: newest, of: uid) }
            }
            link.remember(unanswered: journal.logins) { journal.keep(unanswered: $0) }
        }
        let session = try await driver.start(unless: { $0.isLoggedIn(with: credential) }, prepare: prepare)
        await journal?.flush()
        return session
    }

    /// Waits until the client has stopped. If the task is cancelled, closes the client. The last event is then
    /// delivered again after the next login, because the app may still be handling it. If the app is done with the last
    /// event, call ``close(takingLastEvent:)`` instead of cancelling the task.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client.
    public func run() async throws {
        do {
            try await driver.waitUntilStopped()
        } catch is CancellationError {
            await close(takingLastEvent: false)
        }
    }

    /// Waits until the client has stopped. If the task is cancelled, the client stays open, so that its owner can close
    /// it and say whether the last event was taken.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client; CancellationError if the task is
    ///   cancelled.
    package func stopped() async throws { try await driver.waitUntilStopped() }

    /// Closes the connection.
    ///
    /// - Parameter takingLastEvent: whether the app is done with the last event that it got. If not, the next login
    ///   delivers that event again, unless the app has asked for the next event by then.
    public func close(takingLastEvent: Bool = true) async {
        if takingLastEvent, journal != nil {
            await driver.close(taking: keepLastEvent())
        } else {
            await driver.close(takesLast: takingLastEvent)
        }
        guard let journal else { return }
        if let unsent = await driver.unsentStatistics() { await journal.keep(unsent) }
        await journal.flush()
    }

    /// The session of the last login; nil before the first login.
    package var session: Session? {
        get async { await driver.session }
    }

    /// The cursor, which names the last inbox entry that the app has taken; nil before the first login.
    package var cursor: Cursor? {
        get async {
            let inbox = await driver.link.inbox
            return inbox.epoch == 0 ? nil : Cursor(epoch: inbox.epoch, seq: inbox.taken)
        }
    }

    /// The states of the connection, beginning with the present state. Each access returns a new stream, which ends
    /// when the client next stops or is deinitialized.
    public var states: AsyncStream<ConnectionState> { driver.states() }

    /// The entries of the inbox, each once and in order. Only one loop may read the sequence. It ends when the client
    /// has stopped.
    ///
    /// An entry counts as taken, and is acknowledged to the server, when the app asks for the next entry.
    public var events: ClientEvents<InboxEvent> {
        ClientEvents {
            guard self.journal != nil else { return await self.driver.nextEvent()?.event }
            let kept = await self.keepLastEvent()
            return await self.driver.nextEvent(taking: kept)?.event
        }
    }

    /// The ephemeral events that arrive from now on. Each access returns a new sequence, which ends when the client
    /// next stops or is deinitialized.
    ///
    /// A sequence buffers up to 8,192 events and 16 MiB until its loop reads them. If the buffer is full, new events
    /// are dropped.
    public var ephemeralEvents: ClientEvents<EphemeralEvent> { ephemeral.subscribe() }

    /// The last inbox entries that the app has taken, in this run and in earlier runs, oldest first; empty without a
    /// store.
    public var recentEvents: [InboxEvent] { journal?.recent ?? [] }

    /// The reason why the ``Configuration/store`` cannot be written; nil if it can be written. While the store cannot
    /// be written, the client does not acknowledge the entries that the app takes. The server therefore delivers these
    /// entries again after a restart of the app.
    public var storeError: HermesClientError? { journal?.failure }

    /// Records in the store that the app has taken the last event. The event must not be acknowledged before it is
    /// recorded, because the server can delete an acknowledged entry.
    ///
    /// - Returns: the recorded event; nil if there is no event to record, or if the store could not be written. The app
    ///   may have got another event in the meantime.
    private func keepLastEvent() async -> DelimitedLink.Event? {
        guard let journal, let last = await driver.lastEvent(takenIn: journal) else { return nil }
        guard await !journal.flush() else { return last }
        unkept.withLockedValue { $0.add(last) }
        // A retry may have run before the event was added.
        keepLater()
        return nil
    }

    /// Schedules a retry of the failed writes to the store. Retries follow until one succeeds. They are necessary for
    /// two reasons. First, if the store kept a cursor from before a reset, the next run would skip new entries that
    /// got the seqs of lost entries. Second, unrecorded entries count as untaken, and too many untaken entries pause
    /// the inbox. A paused inbox delivers no entry that would cause another write.
    private func keepLater() {
        guard let journal, unkept.withLockedValue({ $0.mustScheduleRetry() }) else { return }
        driver.eventLoop.scheduleTask(in: Self.storeRetryDelay) { [weak self] in
            let event = self?.unkept.withLockedValue { $0.retryBegan() }
            // If the write fails, the journal calls this function again.
            journal.retry { [weak self] isKept in
                guard isKept, let event else { return }
                self?.kept(event)
            }
        }
    }

    /// Counts an event as taken after a retry has recorded it in the store.
    private func kept(_ event: DelimitedLink.Event) {
        unkept.withLockedValue { $0.remove(event) }
        driver.onLoop { driver in
            driver.withLink { $0.taken(event, now: driver.eventLoop.now, effects: &$1) }
        }
    }
}

/// The event that the store could not record, and the state of its retry.
private struct Unkept: Sendable {
    /// The last entry that the app has taken and that the store could not record. If there is no such entry, this is
    /// an event `inboxReset` that the store could not record. It is nil if all events are recorded.
    private var event: DelimitedLink.Event?
    /// Whether a retry is scheduled and has not begun.
    private var isRetryScheduled = false

    /// Adds an event that the app has taken. A reset takes no entries, so it must not replace an entry.
    mutating func add(_ event: DelimitedLink.Event) {
        if self.event == nil || event.seq > 0 { self.event = event }
    }

    /// Removes an event, because it is recorded now. If a later event has replaced it, nothing is removed.
    mutating func remove(_ event: DelimitedLink.Event) {
        if let last = self.event, last.isSame(as: event) { self.event = nil }
    }

    /// Returns whether a retry must be scheduled now, because none is scheduled. From then on, a retry counts as
    /// scheduled.
    mutating func mustScheduleRetry() -> Bool {
        defer { isRetryScheduled = true }
        return !isRetryScheduled
    }

    /// Notes the beginning of the retry. A write that fails from now on must be repeated once more.
    ///
    /// - Returns: the event that is recorded if the retry succeeds.
    mutating func retryBegan() -> DelimitedLink.Event? {
        isRetryScheduled = false
        return event
    }
}

extension HermesClient.Configuration {
    /// The carrier that transports the packets over MQTT; nil if the address does not name MQTT.
    fileprivate var carrier: MQTTCarrier? {
        guard server.usesMQTT else { return nil }
        return MQTTCarrier(clientID: device.id, longestInterval: heartbeat.longestInterval, port: server.port)
    }
}

extension ConnectionDriver where Link == DelimitedLink {
    /// Removes and returns the counts that may not have reached the server.
    func unsentStatistics() -> Hermes_V1_Statistics? {
        let unsent = link.statistics.counter.unsent(appVersion: link.statistics.appVersion)
        link.statistics.counter = DeliveryCounter()
        return unsent
    }

    /// Notes in the journal that the app has taken the event that it got last. The event, its session and its validity
    /// are read in the same step, because a login in between could reset the inbox or change the account.
    ///
    /// - Returns: the event; nil if there is no such event.
    func lastEvent(takenIn journal: InboxJournal) -> DelimitedLink.Event? {
        guard let handedOver, let session else { return nil }
        journal.taken(handedOver, of: session, isCurrent: link.isCurrent(handedOver))
        return handedOver
    }

    /// Waits for the next event.
    ///
    /// - Parameter event: the event that counts as taken if it is still the last one; nil if there is none.
    /// - Returns: nil after the client has stopped and all events are taken, or if the task is cancelled.
    func nextEvent(taking event: DelimitedLink.Event?) async -> DelimitedLink.Event? {
        take(event)
        return await nextEvent(takesLast: false)
    }

    /// Flushes and closes the connection, and waits until it is closed. Opens no new connection.
    ///
    /// - Parameter event: the event that counts as taken if it is still the last one; nil if there is none.
    func close(taking event: DelimitedLink.Event?) async {
        take(event)
        await close(lastEvent: .kept)
    }

    /// Counts the event as taken if it is still the last event that the app got.
    private func take(_ event: DelimitedLink.Event?) {
        guard let event, let handedOver, handedOver.isSame(as: event) else { return }
        takeHandedOver()
    }

    /// Whether the client is logged in, or logging in, with this credential.
    func isStarted(with credential: Credential) -> Bool {
        switch machine.state {
        case .idle, .stopped, .lost(_, next: .stop): false
        case .connecting, .authenticating, .live, .lost, .waiting: link.isLoggedIn(with: credential)
        }
    }
}
