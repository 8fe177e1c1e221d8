// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
package import Logging
package import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs a `ConnectionEngine.StateMachine` and a link over a channel.
///
/// The actor runs on the event loop of its channels, so only this loop touches its state. It starts no tasks; the
/// loop's events and timers drive it, from `start` until the machine stops.
package actor ConnectionDriver<Link: ConnectionLink> {
    package typealias Machine = ConnectionEngine.StateMachine
    package typealias Requests = ConnectionEngine.RequestTable<Link.Request, RequestWaiter<Link.Answer>>

    /// A function that opens a channel on the event loop, and calls the closure to add the handler to the channel's
    /// pipeline. If an endpoint is given, the function prefers it to the server's own address.
    package typealias Connector =
        @Sendable (any EventLoop, ServerAddress.Endpoint?, @escaping @Sendable (any Channel) throws -> Void)
        -> EventLoopFuture<any Channel>

    package nonisolated let eventLoop: any EventLoop
    private let executor: LoopExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    var machine: Machine
    package var link: Link
    var decoder: Link.Decoder
    var requests = Requests()
    package var session: Link.Login?
    let connector: Connector
    let conditions: DeviceConditions
    /// The id of the registration with `conditions`, from `start` until the machine stops; otherwise nil.
    var observation: UInt64?
    /// The heartbeat that the store has for the present network.
    var remembered: LearnedHeartbeat
    let logger: Logger

    /// The network in which the present connection logged in; nil if it has not logged in.
    private var liveNetwork: NetworkPath?

    /// The number of the present connection. Reports of earlier connections are ignored.
    private(set) var attempt: UInt64 = 0
    var channel: (any Channel)?
    var inbound = ByteBuffer()
    var outbound = ByteBuffer()
    var isFlushScheduled = false
    /// The number of requests that the link has sent by itself since the channel was last writable.
    private var unreadReplies = 0
    /// The waiters for requests that have no answer. They wait until the operating system has accepted the requests.
    var writeWaiters: [RequestWaiter<Void>] = []
    /// The reason why the channel is about to close.
    var lastError: HermesClientError?
    /// The first error of each channel that is still being opened.
    var earlyErrors: [(channel: any Channel, error: HermesClientError)] = []
    /// The bytes of each channel that is still being opened.
    var earlyBytes: [(channel: any Channel, bytes: ByteBuffer)] = []
    var timer: Scheduled<Void>?
    var timerDeadline: NIODeadline?

    var events = Deque<Link.Event>()
    /// The memory that the events take, by the link's estimate.
    var eventBytes = 0
    var eventWaiters = Waiters<Link.Event?, Never>()
    var lastWaiterID: UInt64 = 0
    /// The event that the app is handling. The app has not asked for the next event yet.
    var handedOver: Link.Event?
    /// Whether the app closed the client before it was done with `handedOver`. The next start then delivers this event
    /// again.
    var returnsLast = false

    var liveWaiters = Waiters<Link.Login, any Error>()
    var stopWaiters = Waiters<Void, Never>()
    var observers: [UInt64: AsyncStream<ConnectionState>.Continuation] = [:]
    var publishedState = ConnectionState.idle

    package init(
        link: Link,
        eventLoop: any EventLoop,
        heartbeat: HeartbeatPolicy,
        reconnect: ReconnectPolicy,
        conditions: DeviceConditions,
        loginTimeout: Duration = .seconds(10),
        seed: UInt64 = .random(in: 0...UInt64.max),
        logger: Logger?,
        connector: @escaping Connector
    ) {
        self.link = link
        self.eventLoop = eventLoop
        self.logger = logger ?? Logger(label: "hermes.client", factory: { _ in SwiftLogNoOpLogHandler() })
        self.connector = connector
        executor = LoopExecutor(eventLoop)
        decoder = link.makeDecoder()
        self.conditions = conditions
        let snapshot = conditions.snapshot
        machine = Machine(
            heartbeat: heartbeat,
            reconnect: reconnect,
            conditions: snapshot,
            learned: conditions.heartbeatStore.learned(of: snapshot.path.label),
            authenticationTimeout: loginTimeout,
            seed: seed
        )
        remembered = machine.learned
        self.link.networkKnown(snapshot.path, heartbeat: remembered)
        // There is no connection yet, so nothing can be sent.
        var effects = Link.Effects()
        self.link.appStateKnown(snapshot.appState, isLive: false, effects: &effects)
    }

    deinit { for observer in observers.values { observer.finish() } }
}

// MARK: - The machine's actions, the link's effects
extension ConnectionDriver {
    /// Carries out actions, then publishes the machine's new state and sets the timer.
    func perform(_ actions: [Machine.Action]) {
        for action in actions {
            switch action {
            case .connect(let endpoint): connect(preferring: endpoint)
            case .authenticate: authenticate()
            case .becameLive: becameLive()
            case .sendHeartbeat: sendHeartbeat()
            case .close: channel?.close(promise: nil)
            case .abandon:
                attempt &+= 1
                earlyBytes = []
            }
        }
        publishState()
        rememberHeartbeat()
        schedule()
    }

    /// Carries out a link's effects, in order.
    ///
    /// - Parameter maySend: whether the link's requests are sent. If not, they are dropped.
    func apply(_ effects: Link.Effects, maySend: Bool = true) {
        for effect in effects {
            switch effect {
            case .authenticated(let session, let heartbeatAtMost, let heartbeatPrior):
                self.session = session
                let date = Int64(time(nil))
                if let heartbeatPrior { machine.heartbeatSuggested(heartbeatPrior) }
                perform(machine.authenticated(heartbeatAtMost: heartbeatAtMost, date: date, now: eventLoop.now))
            case .refused(let error):
                perform(machine.authenticationRefused(error, now: eventLoop.now))
            case .answer(let id, let result):
                guard let entry = requests.remove(id) else { continue }
                let answer = result.flatMapError { error -> Result<Link.Answer, any Error> in
                    guard entry.isRepeated,
                        let answer = Link.answer(toRepeated: entry.request, refusedWith: error)
                    else { return .failure(error) }
                    return .success(answer)
                }
                entry.waiter.resume(with: answer)
                continueSearch()
            case .send(let request, let id):
                guard maySend else { continue }
                do throws(HermesClientError) {
                    try write(request, id: id)
                } catch {
                    sendFailed(request, error)
                }
                boundUnread()
            case .event(let event):
                enqueue(event)
            case .forgetEvents:
                forgetEvents()
            case .kicked(let error, let mayReturn, let advice, let isBreach):
                if isBreach || error.isBreach { blame(error) }
                perform(machine.kicked(error, mayReturn: mayReturn, advice: advice, now: eventLoop.now))
            case .shutdownAnnounced(let advice):
                machine.shutdownAnnounced(advice, now: eventLoop.now)
            case .reconnectAdvised(let advice):
                machine.reconnectAdvised(advice, now: eventLoop.now)
            }
        }
    }

    /// Runs a function on the link, then carries out the link's effects. An error ends the connection.
    ///
    /// Before the login is answered, only the login itself is sent. An acknowledgement could otherwise count for the
    /// wrong account. After the login, the link again sends the dropped requests that are still needed.
    ///
    /// - Parameter isLogin: whether the link logs in.
    func withLink(isLogin: Bool = false, _ body: (inout Link, inout Link.Effects) throws -> Void) {
        var effects = Link.Effects()
        let isLive = if case .live = machine.state { true } else { false }
        do {
            try body(&link, &effects)
            apply(effects, maySend: isLive || isLogin)
            schedule()
        } catch {
            apply(effects, maySend: isLive || isLogin)
            guard isLogin else { return fail(error) }
            let reason = error as? HermesClientError ?? HermesClientError(.notEncodable, explain(error), cause: error)
            perform(machine.authenticationRefused(reason, now: eventLoop.now))
        }
    }

    /// Handles a request of the link itself that could not be written. No waiter gets the error.
    ///
    /// A login that cannot be written is final, because the client would write the same login to each new connection.
    private func sendFailed(_ request: Link.Request, _ error: HermesClientError) {
        if case .authenticating = machine.state {
            return perform(machine.authenticationRefused(error, now: eventLoop.now))
        }
        var effects = Link.Effects()
        link.sendFailed(request, error: error, effects: &effects)
        apply(effects)
    }

    private func connect(preferring endpoint: ServerAddress.Endpoint?) {
        inbound = ByteBuffer()
        outbound = ByteBuffer()
        lastError = nil
        earlyErrors = []
        earlyBytes = []
        decoder = link.makeDecoder()
        attempt &+= 1
        let attempt = attempt
        let opened = connector(eventLoop, endpoint) { [weak self] channel in
            guard let self else { throw HermesClientError(.closed, "the client is gone") }
            try channel.pipeline.syncOperations.addHandler(ConnectionHandler(driver: self, attempt: attempt))
        }
        opened.hop(to: eventLoop).whenComplete { [weak self] result in
            guard let self else { return (try? result.get())?.close(promise: nil) ?? () }
            self.assumeIsolated { $0.connectCompleted(result, attempt: attempt) }
        }
    }

    private func connectCompleted(_ result: Result<any Channel, any Error>, attempt: UInt64) {
        guard attempt == self.attempt else { return (try? result.get())?.close(promise: nil) ?? () }
        let early = earlyBytes
        earlyBytes = []
        switch result {
        case .success(let channel):
            self.channel = channel
            // Bytes that arrived together with the end of the handshake may already have broken the connection.
            lastError = earlyErrors.first { $0.channel === channel }?.error
            earlyErrors = []
            // Handle the close later, because it may complete in the middle of the call that closes the channel.
            channel.closeFuture.whenComplete { _ in self.onLoop { $0.channelClosed() } }
            perform(machine.connected(now: eventLoop.now))
            if let bytes = early.first(where: { $0.channel === channel })?.bytes { bytesReceived(bytes, on: channel) }
        case .failure(let error):
            var reason = HermesClientError(.cannotConnect, "cannot connect: \(explain(error))", cause: error)
            // For a WebSocket, a key that is not pinned is detected while the connection is being opened. For a
            // stream, it is detected later.
            if let problem = error as? HermesClientError, problem.code == .badTLS { reason = problem }
            machine.connectFailed(reason, now: eventLoop.now)
            afterLoss()
        }
    }

    private func authenticate() {
        withLink(isLogin: true) { link, effects in try link.connected(effects: &effects) }
    }

    private func becameLive() {
        liveNetwork = machine.conditions.path
        withLink { link, effects in link.becameLive(now: eventLoop.now, effects: &effects) }
        // The link may have ended the connection.
        guard case .live = machine.state else { return }
        writeWaiting()
        if let session { liveWaiters.resume(returning: session) }
    }

    /// Writes the requests that wait for the connection.
    private func writeWaiting() {
        while case .live = machine.state {
            let waiting = requests.unwritten(now: eventLoop.now)
            guard !waiting.isEmpty else { return }
            // If a request cannot be written, `write` passes the error to its waiter.
            for (id, request) in waiting { try? write(request, id: id) }
        }
    }

    /// During a search, writes the next request if the previous request is gone or has waited long enough for its
    /// answer.
    func continueSearch() {
        guard requests.isSearching else { return }
        writeWaiting()
        schedule()
    }

    /// Closes the connection if the server makes the client send replies but does not read them.
    private func boundUnread() {
        guard let channel, !channel.isWritable else {
            unreadReplies = 0
            return
        }
        unreadReplies += 1
        guard unreadReplies > Self.maxUnreadReplies else { return }
        unreadReplies = 0
        fail(HermesClientError(.connectionLost, "the server does not read its input"))
    }

    /// The largest number of unread replies. A reply has only a few bytes.
    private static var maxUnreadReplies: Int { 100_000 }

    /// Handles a breach of the protocol for which the server ends the connection: fails the request that is the cause,
    /// or begins to search for it.
    func blame(_ error: HermesClientError) {
        let isTooLong = error.code == .frameTooLong
        if isTooLong {
            // Only the link knows the lengths of the frames that it sends again by itself.
            var effects = Link.Effects()
            link.refusedForLength(atLeast: requests.longestBytes, effects: &effects)
            guard effects.isEmpty else { return apply(effects) }
        }
        guard let (id, entry) = requests.blame(isTooLong: isTooLong) else { return }
        link.abandoned(id: id)
        let text = "the server refuses this request of \(entry.writtenBytes) bytes: \(error.message)"
        entry.waiter.resume(throwing: HermesClientError(.notEncodable, text))
    }

    private func sendHeartbeat() {
        do {
            try link.writeHeartbeat(into: &outbound)
            scheduleFlush()
        } catch {
            fail(error)
        }
    }

    private func channelClosed() {
        channel = nil
        let error = lastError ?? HermesClientError(.connectionLost, "the server closed the connection")
        machine.connectionClosed(error, now: eventLoop.now)
        afterLoss()
    }

    /// Fails requests after the connection is gone: those that must not be sent again, or all requests if there will be
    /// no further connection.
    private func afterLoss() {
        if let liveNetwork, let end = connectionEnd(from: liveNetwork) { link.connectionEnded(end, in: liveNetwork) }
        liveNetwork = nil
        link.lost()
        inbound = ByteBuffer()
        outbound = ByteBuffer()
        let error = lastError ?? HermesClientError(.connectionLost, "the connection was lost")
        for entry in requests.connectionLost() { entry.waiter.resume(throwing: error) }
        failWriteWaiters(error)
        perform([])
        if case .stopped(let reason) = machine.state { stopped(reason) }
    }

    /// The reason why a logged-in connection in this network ended; nil if the app ended it.
    private func connectionEnd(from network: NetworkPath) -> ConnectionEnd? {
        let error: HermesClientError?
        switch machine.state {
        case .waiting(let waiting): error = waiting.error
        case .stopped(let reason): error = reason
        case .idle, .connecting, .authenticating, .live, .lost: error = lastError
        }
        switch error?.code {
        case nil, .closed, .suspended: return nil
        case .some where network != machine.conditions.path: return .networkChanged
        case .timedOut: return .heartbeatTimeout
        case .connectionLost where lastError != nil: return .reset
        case .some: return .closed
        }
    }

    func stopped(_ reason: HermesClientError?) {
        if let observation { conditions.stopObserving(observation) }
        observation = nil
        let error = reason ?? HermesClientError(.closed, "the client is closed")
        for entry in requests.removeAll() { entry.waiter.resume(throwing: error) }
        failWriteWaiters(error)
        liveWaiters.resume(throwing: error)
        stopWaiters.resume()
        eventWaiters.resume(returning: nil)
        link.stopped()
        schedule()
    }

    func failWriteWaiters(_ error: any Error) {
        for waiter in writeWaiters { waiter.resume(throwing: error) }
        writeWaiters = []
    }

    /// Ends the connection because of an error, for example because the server broke the protocol.
    func fail(_ error: any Error) {
        let reason = error as? HermesClientError ?? HermesClientError(.protocolViolation, explain(error), cause: error)
        if lastError == nil { lastError = reason }
        logger.debug("connection failed", metadata: ["reason": "\(reason)"])
        // The link's last frames go out before the machine closes the connection.
        flush()
        perform(machine.failed(reason, now: eventLoop.now))
    }
}

// MARK: - Time and states
extension ConnectionDriver {
    /// Ensures that there is a timer for the earliest deadline. A timer that fires too early does no harm.
    func schedule() {
        // Without a live connection, a search waits.
        let nextTry = if case .live = machine.state { requests.nextTry } else { NIODeadline?.none }
        let deadlines = [machine.nextDeadline, link.nextDeadline, requests.nextDeadline, nextTry]
        guard let next = deadlines.compactMap({ $0 }).min() else {
            timer?.cancel()
            timer = nil
            timerDeadline = nil
            return
        }
        if let timerDeadline, timerDeadline <= next { return }
        timer?.cancel()
        timerDeadline = next
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: next) { [weak self] in
            self?.assumeIsolated { $0.timerFired() }
        }
    }

    private func timerFired() {
        timer = nil
        timerDeadline = nil
        let now = eventLoop.now
        var isUnanswered = false
        for (id, entry) in requests.expired(now: now) {
            isUnanswered = isUnanswered || entry.isWritten
            link.abandoned(id: id)
            entry.waiter.resume(throwing: HermesClientError(.timedOut, "the server did not answer in time"))
        }
        if isUnanswered { perform(machine.requestExpired(now: now)) }
        continueSearch()
        withLink { link, effects in link.deadlineReached(now: now, effects: &effects) }
        perform(machine.deadlineReached(now: now))
    }

    /// Stores the learned heartbeat of the network.
    func rememberHeartbeat() {
        guard machine.learned != remembered else { return }
        remembered = machine.learned
        conditions.heartbeatStore.remember(remembered, of: machine.conditions.path.label)
        link.networkKnown(machine.conditions.path, heartbeat: remembered)
    }

    private func publishState() {
        let state = machine.published
        guard state != publishedState else { return }
        publishedState = state
        logger.debug("connection state", metadata: ["state": "\(state)"])
        for observer in observers.values { observer.yield(state) }
        guard case .stopped = state else { return }
        for observer in observers.values { observer.finish() }
        observers = [:]
    }
}
