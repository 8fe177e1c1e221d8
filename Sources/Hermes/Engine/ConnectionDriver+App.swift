// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
import NIOCore

// MARK: - The app's requests
extension ConnectionDriver {
    /// Starts connecting and waits until the client is logged in.
    ///
    /// If a close is under way, waits for it first. If the client is logged in, or logging in, with another credential,
    /// ends that login first.
    ///
    /// - Parameters:
    ///   - isSame: the function that returns whether the current login is the requested one.
    ///   - prepare: the function that gives the link the data for the login.
    /// - Throws: HermesClientError if the server refuses the login, or if the reconnect policy allows no further try;
    ///   CancellationError.
    package func start(
        unless isSame: @Sendable (Link) -> Bool = { _ in true },
        prepare: @Sendable (inout Link) -> Void = { _ in }
    ) async throws -> Link.Login {
        while true {
            switch machine.state {
            case .idle, .stopped:
                break
            case .lost(_, next: .stop):
                await waitUntilClosed()
                continue
            case .connecting, .authenticating, .live, .lost, .waiting:
                if isSame(link) { return try await waitUntilLive() }
                // The app continues to handle the last event.
                await close(lastEvent: .kept)
                continue
            }
            break
        }
        returnLast()
        prepare(&link)
        if observation == nil {
            observation = conditions.observe { [weak self] in self?.onLoop { $0.conditionsChanged() } }
        }
        conditionsChanged()
        perform(machine.startRequested())
        return try await waitUntilLive()
    }

    /// Waits until the client is logged in.
    func waitUntilLive() async throws -> Link.Login {
        if case .live = machine.state, let session { return session }
        if case .stopped(let reason) = machine.state {
            throw reason ?? HermesClientError(.closed, "the client is closed")
        }
        let id = nextWaiterID()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                liveWaiters.append(continuation, id: id)
            }
        } onCancel: {
            onLoop { $0.liveWaiters.remove(id)?.resume(throwing: CancellationError()) }
        }
    }

    /// Waits until the state machine has stopped.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client; CancellationError.
    package func waitUntilStopped() async throws {
        let id = nextWaiterID()
        try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if case .stopped = machine.state { return continuation.resume() }
                guard !Task.isCancelled else { return continuation.resume() }
                stopWaiters.append(continuation, id: id)
            }
            try Task.checkCancellation()
        } onCancel: {
            onLoop { $0.stopWaiters.remove(id)?.resume() }
        }
        if case .stopped(let reason?) = machine.state { throw reason }
    }

    /// Waits until the state machine has stopped. If the task is cancelled, closes the connection. The last event then
    /// does not count as taken, because the app may still be handling it.
    ///
    /// - Throws: HermesClientError with the reason, unless the app closed the client.
    package func run() async throws {
        do {
            try await waitUntilStopped()
        } catch is CancellationError {
            await close(takesLast: false)
        }
    }

    /// Flushes and closes the connection, and waits until it is closed. Opens no new connection.
    ///
    /// - Parameter takesLast: whether the last event counts as taken. If not, the next start delivers it again, unless
    ///   the app has asked for the next event by then.
    package func close(takesLast: Bool) async { await close(lastEvent: takesLast ? .taken : .returned) }

    /// How to treat the event that the app got last, when the client is closed.
    enum LastEvent {
        /// The event counts as taken now.
        case taken
        /// The next start delivers the event again, unless the app has asked for the next event by then.
        case returned
        /// The event counts as taken when the app asks for the next event.
        case kept
    }

    /// Closes the connection; see ``close(takesLast:)``.
    func close(lastEvent: LastEvent) async {
        returnsLast = lastEvent == .returned && handedOver != nil
        if lastEvent == .taken { takeHandedOver() }
        beginClosing()
        await waitUntilClosed()
    }

    /// Closes the connection without waiting, because the client is being deinitialized.
    package nonisolated func abandon() { onLoop { $0.beginClosing() } }

    private func beginClosing() {
        takeLeave()
        perform(machine.stopRequested())
        if case .stopped(let reason) = machine.state { stopped(reason) }
    }

    /// Sends the last bytes before the connection closes: the data that the link held back, and the protocol's last
    /// packet.
    private func takeLeave() {
        withLink { link, effects in link.closing(effects: &effects) }
        try? link.writeFarewell(into: &outbound)
        flush()
    }

    private func waitUntilClosed() async {
        await withCheckedContinuation { continuation in
            if case .stopped = machine.state { return continuation.resume() }
            stopWaiters.append(continuation, id: nextWaiterID())
        }
    }

    /// Sends a request as soon as the client is logged in, and waits for its answer.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - replay: whether the request is sent again if the connection ends before the answer.
    ///   - timeout: how long to wait, including the time for reconnects.
    /// - Throws: HermesClientError; CancellationError if the task is cancelled. After a cancellation, the server may
    ///   still carry out the request.
    package func request(
        _ request: Link.Request,
        replay: Requests.Replay,
        timeout: Duration
    ) async throws -> Link.Answer {
        try requireStarted()
        let id = OneShot<UInt64>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                id.value = submit(request, replay: replay, timeout: timeout, waiter: RequestWaiter(continuation))
            }
        } onCancel: {
            onLoop { driver in
                guard let id = id.value, let entry = driver.requests.abandon(id) else { return }
                driver.link.abandoned(id: id)
                entry.waiter.resume(throwing: CancellationError())
                driver.continueSearch()
            }
        }
    }

    /// Sends a request as soon as the client is logged in. The waiter gets the answer.
    ///
    /// - Returns: the request's id.
    @discardableResult
    func submit(
        _ request: Link.Request,
        replay: Requests.Replay,
        timeout: Duration,
        waiter: RequestWaiter<Link.Answer>
    ) -> UInt64 {
        let deadline = eventLoop.now + TimeAmount(timeout)
        let isUrgent = Link.isUrgent(request)
        let id = requests.insert(request, replay: replay, deadline: deadline, waiter: waiter, isUrgent: isUrgent)
        // If the request cannot be written, `write` passes the error to its waiter. During a search, a request that is
        // not urgent waits.
        if case .live = machine.state, isUrgent || !requests.isSearching { try? write(request, id: id) }
        schedule()
        return id
    }

    /// Sends a request that has no answer, if there is a connection. The waiter is resumed after the operating system
    /// has accepted the request.
    func submit(_ request: Link.Request, waiter: RequestWaiter<Void>) {
        guard case .live = machine.state else {
            return waiter.resume(throwing: HermesClientError(.connectionLost, "there is no connection"))
        }
        do {
            try write(request, id: 0)
            writeWaiters.append(waiter)
        } catch {
            waiter.resume(throwing: error)
        }
    }

    /// Sends a request that has no answer. Waits until the client is logged in, and then until the operating system
    /// has accepted the request.
    ///
    /// - Throws: HermesClientError if the client stops or the connection is lost.
    package func send(_ request: Link.Request) async throws {
        try requireStarted()
        _ = try await waitUntilLive()
        try await withCheckedThrowingContinuation { submit(request, waiter: RequestWaiter($0)) }
    }

    /// Sends a request that has no answer, if there is a connection.
    package func sendIfLive(_ request: Link.Request) {
        guard case .live = machine.state else { return }
        try? write(request, id: 0)
    }

    /// Applies the present state of the app and of the network. Either may have changed.
    private func conditionsChanged() {
        let snapshot = conditions.snapshot
        if snapshot.appState == .suspended, case .live = machine.state {
            takeLeave()
        }
        let isLive = if case .live = machine.state { snapshot.appState != .suspended } else { false }
        withLink { link, effects in link.appStateKnown(snapshot.appState, isLive: isLive, effects: &effects) }
        if isLive { flush() }
        let learned = conditions.heartbeatStore.learned(of: snapshot.path.label)
        let actions = machine.conditionsChanged(snapshot, learned: learned, now: eventLoop.now)
        // This heartbeat is already known, so it need not be stored.
        remembered = machine.learned
        link.networkKnown(snapshot.path, heartbeat: remembered)
        perform(actions)
    }

    /// Returns a stream of the states, which begins with the present state. It ends when the client next stops or is
    /// deinitialized.
    package nonisolated func states() -> AsyncStream<ConnectionState> {
        AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
            onLoop { driver in
                continuation.yield(driver.publishedState)
                let id = driver.nextWaiterID()
                driver.observers[id] = continuation
                continuation.onTermination = { [weak driver] _ in driver?.onLoop { $0.observers[id] = nil } }
            }
        }
    }

    var isStopped: Bool { if case .stopped = machine.state { true } else { false } }

    /// The reason for which the state machine has stopped; nil if it has not stopped, or if the app closed the client.
    package var stopReason: HermesClientError? { if case .stopped(let reason) = machine.state { reason } else { nil } }

    func requireStarted() throws {
        switch machine.state {
        case .idle: throw HermesClientError(.closed, "log in first")
        case .stopped(let reason): throw reason ?? HermesClientError(.closed, "the client is closed")
        case .connecting, .authenticating, .live, .lost, .waiting: return
        }
    }

    func nextWaiterID() -> UInt64 {
        lastWaiterID &+= 1
        return lastWaiterID
    }

    nonisolated func onLoop(_ body: @escaping @Sendable (isolated ConnectionDriver) -> Void) {
        eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}

/// A value that is set once on a driver's loop and read there later.
///
/// Unchecked because the compiler cannot see that the value is set and read on the same loop.
private final class OneShot<Value: Sendable>: @unchecked Sendable {
    var value: Value?
}

// MARK: - Events
extension ConnectionDriver {
    /// Waits for the next event.
    ///
    /// - Parameter takesLast: whether the previous event counts as taken.
    /// - Returns: nil after the client has stopped and all events are taken, or if the task is cancelled.
    package func nextEvent(takesLast: Bool = true) async -> Link.Event? {
        if takesLast { takeHandedOver() }
        handedOver = nil
        // The app has asked for the next event, so the next start does not deliver the last event again.
        returnsLast = false
        guard !Task.isCancelled else { return nil }
        while let event = events.popFirst() {
            eventBytes -= link.bytes(of: event)
            link.backlogChanged(events.count, bytes: eventBytes)
            guard skipRepeat(event) else {
                handedOver = event
                return event
            }
        }
        if case .stopped = machine.state { return nil }
        let id = nextWaiterID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled else { return continuation.resume(returning: nil) }
                eventWaiters.append(continuation, id: id)
            }
        } onCancel: {
            onLoop { $0.eventWaiters.remove(id)?.resume(returning: nil) }
        }
    }

    func enqueue(_ event: Link.Event) {
        // If the app is not waiting, the first copy of a repeated event may still be in the queue, so the repetition
        // must not be skipped yet.
        if !eventWaiters.isEmpty, skipRepeat(event) { return }
        if let waiter = eventWaiters.popFirst() {
            handedOver = event
            waiter.resume(returning: event)
        } else {
            events.append(event)
            eventBytes += link.bytes(of: event)
            link.backlogChanged(events.count, bytes: eventBytes)
        }
    }

    /// Skips an event if the app has seen it before.
    private func skipRepeat(_ event: Link.Event) -> Bool {
        guard link.isRepeat(event) else { return false }
        withLink { link, effects in link.skipped(event, now: eventLoop.now, effects: &effects) }
        return true
    }

    /// Drops the waiting events, because they belong to another account.
    func forgetEvents() {
        events.removeAll()
        eventBytes = 0
        handedOver = nil
        link.backlogChanged(0, bytes: 0)
    }

    /// Puts the last event back in front of the waiting events if the app has closed the client without taking that
    /// event. An event that is delivered at most once counts as taken instead.
    private func returnLast() {
        guard returnsLast else { return }
        returnsLast = false
        guard let event = handedOver else { return }
        guard link.comesAgain(event) else { return takeHandedOver() }
        handedOver = nil
        events.prepend(event)
        eventBytes += link.bytes(of: event)
        link.backlogChanged(events.count, bytes: eventBytes)
    }

    func takeHandedOver() {
        guard let event = handedOver else { return }
        handedOver = nil
        withLink { link, effects in link.taken(event, now: eventLoop.now, effects: &effects) }
    }
}
