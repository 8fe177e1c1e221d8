// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The parts that the connections of all protocols share: the state machine and the table of unanswered requests.
package enum ConnectionEngine {}

extension ConnectionEngine {
    /// Decides when to connect, log in, send heartbeats, give up and reconnect. Does no I/O and reads no clock.
    ///
    ///     idle -> connecting -> authenticating -> live -> lost -> waiting -> connecting …
    ///                                               any state -> (lost ->) stopped
    ///
    /// There is at most one connection. In the state `lost`, the machine waits until the old connection is closed.
    package struct StateMachine: Sendable {
        /// An instruction to the owner.
        enum Action: Hashable, Sendable {
            /// Open a connection, to the endpoint if it answers. Then report `connected` or `connectFailed`.
            case connect(preferring: ServerAddress.Endpoint?)
            /// Log in. Then report `authenticated` or `authenticationRefused`.
            case authenticate
            /// Send the waiting requests, then new ones.
            case becameLive
            /// Send a heartbeat.
            case sendHeartbeat
            /// Close the connection. Then report `connectionClosed`.
            case close
            /// Close the connection that is being opened, as soon as it is open. Do not report anything about it.
            case abandon
        }

        package typealias Advice = ConnectionEngine.Advice
        typealias Slot = ConnectionEngine.ReconnectSchedule.Slot

        enum State: Hashable, Sendable {
            case idle
            case connecting
            case authenticating(until: NIODeadline)
            case live(Live)
            case lost(HermesClientError, next: Next)
            case waiting(Waiting)
            case stopped(HermesClientError?)
        }

        struct Live: Hashable, Sendable {
            var since: NIODeadline
            var lastReceived: NIODeadline
            /// The time of the last heartbeat, or of a write that counts as a heartbeat.
            var lastWritten: NIODeadline
            var heartbeat: Heartbeat
            /// The moment at which the client replaces this connection with a new one, as the server asked.
            var leaveAt: Slot?
            /// The moment that the server advised for reconnecting after it has closed the connection.
            var returnAt: Slot?
        }

        struct Waiting: Hashable, Sendable {
            /// The reason why there is no connection.
            var error: HermesClientError
            /// The time of the next try.
            var until: NIODeadline
            /// The earliest time at which the server allows a try, even if the network changes or the app comes to the
            /// foreground.
            var earliest: NIODeadline
            /// The wait, counted from the loss or from the last failed try.
            var delay: Duration
        }

        enum Heartbeat: Hashable, Sendable {
            /// The next heartbeat is due at this time.
            case due(NIODeadline)
            /// A heartbeat is unanswered; `tries` counts the unanswered heartbeats in a row.
            case unanswered(until: NIODeadline, tries: Int, evidence: Evidence)
        }

        /// The evidence that a heartbeat's outcome gives about the length of silence that the network tolerates.
        enum Evidence: Hashable, Sendable {
            /// The outcome shows nothing, because the heartbeat was sent only to check the connection.
            case none
            /// Only a failure counts: the silence was shorter than the learned interval, or an earlier heartbeat was
            /// lost.
            case failure
            /// Both success and failure count.
            case both
        }

        /// The next step once the lost connection is closed.
        enum Next: Hashable, Sendable {
            /// Try as soon as the conditions allow it, because the loss was not a failure.
            case atOnce
            case byPolicy
            case at(Slot)
            case stop(HermesClientError?)
        }

        var state = State.idle
        private(set) var conditions: DeviceConditions.Snapshot
        let heartbeat: HeartbeatPolicy
        /// The longest interval between heartbeats that the server allows.
        var serverLimit: Duration?
        /// The heartbeat learned for the present network.
        var learned: LearnedHeartbeat
        /// The difference between the date, in seconds since 1970, and the uptime.
        var dateOffset: Int64 = 0
        private var schedule: ReconnectSchedule
        /// The endpoint to which the server redirected the client. A successful login resets it to nil.
        private var redirection: ServerAddress.Endpoint?
        private let authenticationTimeout: Duration

        /// The lifetime of a connection after which the count of failures is reset.
        static let wellAfter = Duration.seconds(10)
        /// If a timer fires this late, the process was not running in the meantime. A missing answer then says nothing
        /// about the server.
        static let halted = Duration.seconds(5)

        init(
            heartbeat: HeartbeatPolicy,
            reconnect: ReconnectPolicy,
            conditions: DeviceConditions.Snapshot = .init(),
            learned: LearnedHeartbeat? = nil,
            authenticationTimeout: Duration = .seconds(10),
            seed: UInt64
        ) {
            self.heartbeat = heartbeat
            self.conditions = conditions
            self.learned = Self.known(learned, heartbeat)
            schedule = ReconnectSchedule(reconnect, seed: seed)
            self.authenticationTimeout = authenticationTimeout
        }
    }
}

/// Requests of the owner, and deadlines.
extension ConnectionEngine.StateMachine {
    /// The number of failed tries since the connection last worked.
    var failures: Int { schedule.failures }

    /// The time at which the owner must call `deadlineReached`; nil if there is none.
    var nextDeadline: NIODeadline? {
        switch state {
        case .idle, .connecting, .lost, .stopped: nil
        case .authenticating(let until): until
        case .waiting(let waiting): conditions.isHeld ? nil : waiting.until
        case .live(let live):
            switch live.heartbeat {
            case .due(let at): min(at, live.leaveAt?.moment ?? at)
            case .unanswered(let until, _, _): min(until, live.leaveAt?.moment ?? until)
            }
        }
    }

    /// Starts to connect, because the app wants a connection.
    mutating func startRequested() -> [Action] {
        switch state {
        case .idle, .stopped:
            schedule.startAnew()
            return connect()
        case .lost(let error, next: .stop):
            // The app closed the client, and started it again before the old connection was closed.
            state = .lost(error, next: .byPolicy)
            return []
        case .connecting, .authenticating, .live, .lost, .waiting:
            return []
        }
    }

    /// Ends the connection, because the app wants no more connections.
    mutating func stopRequested() -> [Action] {
        switch state {
        case .idle, .waiting:
            state = .stopped(nil)
            return []
        case .connecting:
            state = .stopped(nil)
            return [.abandon]
        case .authenticating, .live:
            state = .lost(HermesClientError(.closed, "the client was closed"), next: .stop(nil))
            return [.close]
        case .lost(let error, next: .atOnce), .lost(let error, next: .byPolicy), .lost(let error, next: .at):
            state = .lost(error, next: .stop(nil))
            return []
        case .lost(_, next: .stop), .stopped:
            return []
        }
    }

    /// Applies the present state of the app and of the network. Either may have changed.
    ///
    /// - Parameter known: the heartbeat that was learned for the network; nil if there is none.
    mutating func conditionsChanged(
        _ new: DeviceConditions.Snapshot,
        learned known: LearnedHeartbeat? = nil,
        now: NIODeadline
    ) -> [Action] {
        let old = conditions
        conditions = new
        if new.path.label != old.path.label { learned = Self.known(known, heartbeat) }
        if new.appState == .suspended { return suspend(now: now) }
        let cameForward = new.appState == .foreground && old.appState != .foreground
        let isElsewhere = new.path.isUsable && new.path != old.path
        return cameForward || isElsewhere || (old.isHeld && !new.isHeld) ? look(now: now) : []
    }

    /// Ends the connection before the app is suspended.
    private mutating func suspend(now: NIODeadline) -> [Action] {
        let error = HermesClientError(.suspended, "the app is suspended")
        switch state {
        case .connecting:
            state = .lost(error, next: .atOnce)
            leaveLost(now: now)
            return [.abandon]
        case .authenticating, .live:
            return lose(error, next: .atOnce)
        case .idle, .lost, .waiting, .stopped:
            return []
        }
    }

    /// Checks an open connection with one heartbeat. If there is no connection, tries to open one at once.
    private mutating func look(now: NIODeadline) -> [Action] {
        switch state {
        case .waiting(var waiting):
            schedule.startAnew()
            if !conditions.isHeld, now >= waiting.earliest { return connect() }
            waiting.until = min(waiting.until, max(now, waiting.earliest))
            state = .waiting(waiting)
            return []
        case .live(let live):
            guard case .due = live.heartbeat, heartbeat.answerTimeout != nil else { return [] }
            return beat(live, tries: heartbeat.tries, evidence: .none, now: now)
        case .idle, .connecting, .authenticating, .lost, .stopped:
            return []
        }
    }

    /// Carries out the work that is scheduled for `now` or earlier. Calls before `nextDeadline` are harmless.
    mutating func deadlineReached(now: NIODeadline) -> [Action] {
        switch state {
        case .idle, .connecting, .lost, .stopped:
            return []
        case .authenticating(let until):
            guard now >= until else { return [] }
            return lose(HermesClientError(.timedOut, "the server did not answer the login in time"), next: .byPolicy)
        case .waiting(let waiting):
            return now >= waiting.until && !conditions.isHeld ? connect() : []
        case .live(let live):
            if let slot = live.leaveAt, now >= slot.moment {
                noteEnd(of: live, now: now)
                return lose(HermesClientError(.kicked, "the server asked to reconnect"), next: .at(slot))
            }
            switch live.heartbeat {
            case .due(let at):
                guard now >= at else { return [] }
                return beat(live, tries: 1, evidence: evidence(live, now: now), now: now)
            case .unanswered(let until, let tries, let evidence):
                guard now >= until else { return [] }
                if now - until >= TimeAmount(Self.halted) {
                    return beat(live, tries: heartbeat.tries, evidence: .none, now: now)
                }
                guard tries < heartbeat.tries else {
                    return lose(
                        HermesClientError(.timedOut, "the server did not answer \(tries) heartbeat(s)"),
                        next: afterLoss(live, now: now)
                    )
                }
                return beat(live, tries: tries + 1, evidence: evidence == .none ? .none : .failure, now: now)
            }
        }
    }
}

/// Reports about the connection.
extension ConnectionEngine.StateMachine {
    /// Reports that the connection is open.
    mutating func connected(now: NIODeadline) -> [Action] {
        switch state {
        case .connecting:
            state = .authenticating(until: now + TimeAmount(authenticationTimeout))
            return [.authenticate]
        case .lost:
            // The connection was abandoned while it was being opened.
            return [.close]
        case .idle, .authenticating, .live, .waiting, .stopped:
            assertionFailure("connected in \(state)")
            return [.close]
        }
    }

    /// Reports that the connection could not be opened.
    mutating func connectFailed(_ error: HermesClientError, now: NIODeadline) {
        switch state {
        case .connecting:
            state = .lost(error, next: .byPolicy)
            leaveLost(now: now)
        case .lost:
            leaveLost(now: now)
        case .idle, .authenticating, .live, .waiting, .stopped:
            assertionFailure("connectFailed in \(state)")
        }
    }

    /// Reports that the server accepted the login.
    ///
    /// - Parameters:
    ///   - heartbeatAtMost: the longest interval between heartbeats that the server allows.
    ///   - date: the wall clock in seconds since 1970.
    mutating func authenticated(heartbeatAtMost: Duration? = nil, date: Int64 = 0, now: NIODeadline) -> [Action] {
        switch state {
        case .authenticating:
            redirection = nil
            schedule.arrived()
            serverLimit = heartbeatAtMost.map { max($0, .seconds(1)) }
            dateOffset = date - Self.seconds(now)
            let due = Heartbeat.due(now + interval)
            state = .live(Live(since: now, lastReceived: now, lastWritten: now, heartbeat: due))
            return [.becameLive]
        case .live, .lost:
            // A second answer, or an answer that arrived while the connection was being closed.
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("authenticated in \(state)")
            return []
        }
    }

    /// Reports that the server refused the login, or that the login cannot be written. If the error has a
    /// `retryAfter`, the client tries again after that time, at a random moment of a window half as long. After a
    /// temporary error of the server without this time, the policy sets the next try. Any other refusal is final.
    mutating func authenticationRefused(_ error: HermesClientError, now: NIODeadline) -> [Action] {
        switch state {
        case .authenticating:
            guard let retryAfter = error.retryAfter, !schedule.isOver else {
                return lose(error, next: error.isTroubleOfServer ? .byPolicy : .stop(error))
            }
            let advice = Advice(notBefore: retryAfter, window: retryAfter / 2)
            return lose(error, next: .at(schedule.slot(advice, now: now)))
        case .live, .lost:
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("authenticationRefused in \(state)")
            return []
        }
    }

    /// Reports the reason why the server is about to close the connection. The client reconnects only if `mayReturn`
    /// is true.
    mutating func kicked(
        _ error: HermesClientError,
        mayReturn: Bool,
        advice: Advice?,
        now: NIODeadline
    ) -> [Action] {
        switch state {
        case .authenticating, .live:
            guard mayReturn else { return lose(error, next: .stop(error)) }
            var next = Next.byPolicy
            if case .live(let live) = state { next = afterLoss(live, now: now) }
            if let advice { next = .at(slot(advice, now: now)) }
            return lose(error, next: next)
        case .lost:
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("kicked in \(state)")
            return []
        }
    }

    /// Reports that the server will close the connection soon, and passes the server's advice for reconnecting.
    mutating func shutdownAnnounced(_ advice: Advice, now: NIODeadline) {
        switch state {
        case .live(var live):
            live.returnAt = slot(advice, now: now)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that the server asked for a new connection in place of this one.
    mutating func reconnectAdvised(_ advice: Advice, now: NIODeadline) {
        switch state {
        case .live(var live):
            live.leaveAt = slot(advice, now: now)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that the server broke the protocol, or that the connection cannot be used any more.
    mutating func failed(_ error: HermesClientError, now: NIODeadline) -> [Action] {
        switch state {
        case .connecting, .authenticating:
            return lose(error, next: .byPolicy)
        case .live(let live):
            return lose(error, next: afterLoss(live, now: now))
        case .idle, .lost, .waiting, .stopped:
            return []
        }
    }

    /// Reports that the connection is closed.
    mutating func connectionClosed(_ error: HermesClientError, now: NIODeadline) {
        switch state {
        case .connecting, .authenticating:
            state = .lost(error, next: .byPolicy)
            leaveLost(now: now)
        case .live(let live):
            state = .lost(error, next: afterLoss(live, now: now))
            leaveLost(now: now)
        case .lost:
            leaveLost(now: now)
        case .idle, .waiting, .stopped:
            return
        }
    }
}

extension ConnectionEngine.StateMachine {
    private mutating func lose(_ error: HermesClientError, next: Next) -> [Action] {
        state = .lost(error, next: next)
        return [.close]
    }

    private mutating func connect() -> [Action] {
        state = .connecting
        return [.connect(preferring: redirection)]
    }

    private mutating func noteEnd(of live: Live, now: NIODeadline) {
        if now - live.since >= TimeAmount(Self.wellAfter) { schedule.startAnew() }
    }

    private mutating func afterLoss(_ live: Live, now: NIODeadline) -> Next {
        noteEnd(of: live, now: now)
        switch live.heartbeat {
        case .unanswered(_, _, .failure), .unanswered(_, _, .both):
            if conditions.path.isUsable { learn(now: now) { $0.failed(within: $1, date: $2) } }
        case .unanswered(_, _, .none), .due:
            learn(now: now) { learned, _, _ in learned.interrupted() }
        }
        return live.returnAt.map { .at($0) } ?? .byPolicy
    }

    private mutating func leaveLost(now: NIODeadline) {
        guard case .lost(let error, let next) = state else { return }
        let until: NIODeadline?
        var earliest = now
        switch next {
        case .stop(let reason):
            state = .stopped(reason)
            return
        case .atOnce:
            until = now
        case .byPolicy:
            until = schedule.next(now: now)
        case .at(let slot):
            until = schedule.next(slot, now: now)
            earliest = slot.earliest
        }
        guard let until else {
            state = .stopped(error)
            return
        }
        let delay = Duration(until - now)
        state = .waiting(Waiting(error: error, until: until, earliest: earliest, delay: delay))
    }

    private mutating func slot(_ advice: Advice, now: NIODeadline) -> Slot {
        if let endpoint = advice.endpoint { redirection = endpoint }
        return schedule.slot(advice, now: now)
    }
}

extension ConnectionEngine {
    /// Decides the time of the next try from the policy and the tries so far. Reads no clock.
    ///
    /// The default policy is ``ReconnectPolicy/standard``: six windows of 15 s, then delays of 1, 2, 5, 10, 10, …
    /// minutes, ±20 %. Each window begins at the end of the previous window or, if a try fails later than that, when
    /// the try fails. So all clients that lost their server at the same moment make one try in every window, and the
    /// server sees them return at an even rate. If each window began at the client's own failure, the peak rate would
    /// double.
    ///
    /// The server can advise a window for reconnecting. If a try fails early in this window because the server is not
    /// available yet, the moment of a second try is drawn at random from the rest of the window. So the clients whose
    /// first tries failed return at an even rate until the window ends. The shorter the rest of the window, the higher
    /// this rate. So if less than `leastRest` of the window is left when a try fails, the next try is made in the
    /// policy's next window.
    struct ReconnectSchedule: Sendable {
        /// The moment for reconnecting that follows from the server's advice.
        struct Slot: Hashable, Sendable {
            /// The earliest moment. Neither a changed network nor an app that comes to the foreground makes it earlier.
            var earliest: NIODeadline
            /// The random moment at which the client tries.
            var moment: NIODeadline
            /// The end of the window that the moment was drawn from.
            var end: NIODeadline
        }

        /// The number of failed tries since the connection last worked.
        private(set) var failures = 0
        /// The end of the last try's window.
        private var windowEnd: NIODeadline?
        /// The slot of the present try; nil if the server advised none, or if a login has succeeded since the advice.
        private var slot: Slot?
        private let policy: ReconnectPolicy
        private var random: SplitMix64

        /// The longest advised wait that the client obeys.
        static let longestAdvice = Duration.seconds(3600)
        /// A second try is made in the same advised window only if at least this fraction of the window is left. In
        /// the first quarter of the window, a failed client thus tries again in the same window. The peak rate of
        /// reconnects is at most the inverse of this fraction, 1.33, times the even rate.
        static let leastRest = 0.75
        /// The shortest time that must be left for a second try, regardless of the window's length.
        static let shortestRest = TimeAmount.seconds(1)

        init(_ policy: ReconnectPolicy, seed: UInt64) {
            self.policy = policy
            random = SplitMix64(state: seed)
        }

        /// Whether the policy allows no further try.
        var isOver: Bool { policy.delay(afterFailures: failures, random: 0) == nil }

        /// Resets the count of failures, because the connection worked or the conditions changed.
        mutating func startAnew() {
            failures = 0
            windowEnd = nil
            slot = nil
        }

        /// Notes that a try succeeded. The count of failures stays, because it is not known yet whether the connection
        /// will keep working.
        mutating func arrived() { slot = nil }

        /// Plans the next try after a try failed or the connection was lost.
        ///
        /// - Returns: the time of the next try; nil if there is none.
        mutating func next(now: NIODeadline) -> NIODeadline? {
            let fraction = random.nextFraction()
            guard let delay = policy.delay(afterFailures: failures, random: fraction) else { return nil }
            if let rest = restOfSlot(now: now) {
                failures += 1
                return now + TimeAmount(Duration(rest) * fraction)
            }
            var begin = now
            if failures < policy.windows.count {
                begin = max(now, windowEnd ?? now)
                windowEnd = begin + TimeAmount(policy.windows[failures])
            }
            failures += 1
            return begin + TimeAmount(delay)
        }

        /// Plans the next try in a slot that the server advised, after a try failed or the connection was lost.
        /// Repeated advice does not make the client try more often than its policy allows.
        mutating func next(_ slot: Slot, now: NIODeadline) -> NIODeadline? {
            self.slot = nil
            guard let own = next(now: now) else { return nil }
            self.slot = slot
            windowEnd = max(windowEnd ?? slot.end, slot.end)
            return max(now, failures > 1 ? max(own, slot.moment) : slot.moment)
        }

        /// Chooses a random moment for this client in the window that the server advises.
        mutating func slot(_ advice: Advice, now: NIODeadline) -> Slot {
            let earliest = now + TimeAmount(min(advice.notBefore, Self.longestAdvice))
            let window = min(advice.window, policy.maxAdvisedWindow)
            let moment = earliest + TimeAmount(window * random.nextFraction())
            return Slot(earliest: earliest, moment: moment, end: earliest + TimeAmount(window))
        }

        /// Returns the rest of the advised window; nil if there is none, or if it is too short for another try.
        private func restOfSlot(now: NIODeadline) -> TimeAmount? {
            guard let slot, now >= slot.earliest else { return nil }
            let rest = slot.end - now
            let least = Duration(slot.end - slot.earliest) * Self.leastRest
            return rest >= Self.shortestRest && Duration(rest) >= least ? rest : nil
        }
    }
}

extension ReconnectPolicy {
    /// Returns the wait before the next try. If the try has a window, the wait counts from the start of the window.
    ///
    /// - Parameters:
    ///   - failures: the number of failed tries since the connection last worked.
    ///   - random: a random number, at least 0 and below 1.
    /// - Returns: the wait; nil if there is no further try.
    func delay(afterFailures failures: Int, random: Double) -> Duration? {
        if failures < windows.count { return windows[max(0, failures)] * random }
        guard let last = delays.last else { return nil }
        let index = failures - windows.count
        let delay = index < delays.count ? delays[index] : last
        return delay * (1 + jitter * (2 * random - 1))
    }
}
