// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The parts that the connections of all protocols share: the state machine and the table of unanswered requests.
package enum ConnectionEngine {}

extension ConnectionEngine {
    /// Decides when to connect, log in, send heartbeats, give up and reconnect. Does no I/O; time is passed in.
    ///
    ///     idle -> connecting -> authenticating -> live -> lost -> waiting -> connecting …
    ///                                               any state -> (lost ->) stopped
    ///
    /// There is at most one connection: in `lost` the machine waits until the old one is closed.
    package struct StateMachine: Sendable {
        /// An instruction to the owner.
        enum Action: Hashable, Sendable {
            /// Open a connection, to the endpoint if it answers; report `connected` or `connectFailed`.
            case connect(preferring: ServerAddress.Endpoint?)
            /// Log in; report `authenticated` or `authenticationRefused`.
            case authenticate
            /// Send the waiting requests, then new ones.
            case becameLive
            /// Send a heartbeat.
            case sendHeartbeat
            /// Close the connection; report `connectionClosed`.
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
            /// The time of the last heartbeat, or of a write that counts as one.
            var lastWritten: NIODeadline
            var heartbeat: Heartbeat
            /// The moment at which the client replaces this connection with a new one, as the server asked.
            var leaveAt: Slot?
            /// The moment for reconnecting after the server has closed the connection, as the server advised.
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
            /// The wait, counted from the loss.
            var delay: Duration
        }

        enum Heartbeat: Hashable, Sendable {
            /// The next heartbeat is due at this time.
            case due(NIODeadline)
            /// A heartbeat is unanswered; `tries` counts the unanswered heartbeats in a row.
            case unanswered(until: NIODeadline, tries: Int, evidence: Evidence)
        }

        /// The evidence that a heartbeat's outcome gives about how long a silence the network tolerates.
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
            /// Try as soon as the conditions allow: the loss was no failure.
            case atOnce
            case byPolicy
            case at(Slot)
            case stop(HermesClientError?)
        }

        private(set) var state = State.idle
        private(set) var conditions: DeviceConditions.Snapshot
        private let heartbeat: HeartbeatPolicy
        /// The longest interval between heartbeats that the server allows.
        private var serverLimit: Duration?
        /// The heartbeat learned for the present network.
        private(set) var learned: LearnedHeartbeat
        /// The difference between the date, in seconds since 1970, and the uptime.
        private var dateOffset: Int64 = 0
        private var schedule: ReconnectSchedule
        /// The endpoint that the server sent the client to, until a login succeeds.
        private var redirection: ServerAddress.Endpoint?
        private let authenticationTimeout: Duration

        /// A connection that lived this long resets the count of failures.
        static let wellAfter = Duration.seconds(10)
        /// If a timer is this late, the process did not run in between, so a missing answer says nothing about the
        /// server.
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

/// Requests of the owner, and time.
extension ConnectionEngine.StateMachine {
    /// The number of failed tries since the connection last worked.
    var failures: Int { schedule.failures }

    /// The time at which `deadlineReached` is due; nil if none.
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
            // The app closed and started the client again before the old connection was gone.
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

    /// Takes over the app's state and the network, either of which may have changed.
    ///
    /// - Parameter known: the heartbeat learned for the network; nil if there is none.
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

    /// Checks an open connection with one heartbeat or, without a connection, tries at once to open one.
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

    /// Does what is due at `now`. Calls before `nextDeadline` are harmless.
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

/// Reports of the connection.
extension ConnectionEngine.StateMachine {
    /// Reports that the connection is open.
    mutating func connected(now: NIODeadline) -> [Action] {
        switch state {
        case .connecting:
            state = .authenticating(until: now + TimeAmount(authenticationTimeout))
            return [.authenticate]
        case .lost:
            // The connection was given up while it was being opened.
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

    /// Takes the interval that the server suggests for the network. It is used only if nothing was learned; an earlier
    /// suggestion does not count as learned.
    mutating func heartbeatSuggested(_ interval: Duration) {
        let isNew = learned.changedAt == 0 && learned.successes == 0 && learned.failures == 0
        guard heartbeat.adaptation != nil, isNew else { return }
        learned = Self.known(LearnedHeartbeat(interval: interval), heartbeat)
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

    /// Reports that the server refused the login. The refusal is final unless the error has a `retryAfter`. In that
    /// case the next try comes after that time, at a random moment of a window that is half as long.
    mutating func authenticationRefused(_ error: HermesClientError, now: NIODeadline) -> [Action] {
        switch state {
        case .authenticating:
            guard let retryAfter = error.retryAfter, !schedule.isOver else {
                return lose(error, next: .stop(error))
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

    /// Reports that bytes arrived from the server.
    mutating func bytesReceived(now: NIODeadline) {
        switch state {
        case .live(var live):
            live.lastReceived = now
            if case .unanswered(_, _, .both) = live.heartbeat {
                learn(now: now) { $0.succeeded(within: $1, date: $2) }
            }
            live.heartbeat = .due(nextBeat(live))
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that bytes other than a heartbeat were sent to the server. They show the server that the client is
    /// alive. Only incoming bytes show the client that the server is alive.
    mutating func bytesWritten(now: NIODeadline) {
        switch state {
        case .live(var live):
            guard heartbeat.restartsOnWrite else { return }
            live.lastWritten = now
            if case .due = live.heartbeat { live.heartbeat = .due(nextBeat(live)) }
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that a request was not answered in time. If no other bytes have arrived recently, one heartbeat checks
    /// the connection at once.
    mutating func requestExpired(now: NIODeadline) -> [Action] {
        switch state {
        case .live(let live):
            guard case .due = live.heartbeat, let answerTimeout = heartbeat.answerTimeout,
                now - live.lastReceived >= TimeAmount(answerTimeout)
            else { return [] }
            return beat(live, tries: heartbeat.tries, evidence: .none, now: now)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return []
        }
    }

    /// Reports the reason why the server is about to close the connection. The client does not reconnect unless
    /// `mayReturn`.
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

    /// Reports that the server will close the connection soon, and when it advises to reconnect.
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

    private mutating func beat(_ live: Live, tries: Int, evidence: Evidence, now: NIODeadline) -> [Action] {
        var live = live
        live.lastWritten = now
        if let answerTimeout = heartbeat.answerTimeout {
            let until = now + TimeAmount(answerTimeout)
            live.heartbeat = .unanswered(until: until, tries: tries, evidence: evidence)
        } else {
            live.heartbeat = .due(nextBeat(live))
        }
        state = .live(live)
        return [.sendHeartbeat]
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

/// The heartbeat interval.
extension ConnectionEngine.StateMachine {
    /// The time between two heartbeats: the policy's interval or, with an adaptation, the learned interval. In the
    /// foreground, the learned interval is limited to the policy's interval. The server's limit always applies.
    private var interval: TimeAmount {
        var interval = heartbeat.interval
        if heartbeat.adaptation != nil {
            interval = conditions.appState == .foreground ? min(interval, learned.interval) : learned.interval
        }
        return TimeAmount(min(interval, serverLimit ?? interval))
    }

    /// Returns the time of the next heartbeat: one interval after the last incoming byte or the last write, whichever
    /// is earlier. If heartbeats have no answers, only writes count.
    private func nextBeat(_ live: Live) -> NIODeadline {
        let last = heartbeat.answerTimeout == nil ? live.lastWritten : min(live.lastWritten, live.lastReceived)
        return last + interval
    }

    /// Returns the evidence of the heartbeat that is due. It is `both` if the interval is at least the learned one and
    /// nothing except its answer has arrived since the last heartbeat.
    private func evidence(_ live: Live, now: NIODeadline) -> Evidence {
        let learned = TimeAmount(learned.interval)
        let heard = now - live.lastReceived + TimeAmount(heartbeat.answerTimeout ?? .zero)
        return interval >= learned && heard >= learned ? .both : .failure
    }

    private mutating func learn(
        now: NIODeadline,
        _ body: (inout LearnedHeartbeat, HeartbeatAdaptation, Int64) -> Void
    ) {
        guard let bounds = heartbeat.adaptation else { return }
        body(&learned, bounds, Self.seconds(now) + dateOffset)
    }

    private static func seconds(_ moment: NIODeadline) -> Int64 { Int64(moment.uptimeNanoseconds / 1_000_000_000) }

    private static func known(_ learned: LearnedHeartbeat?, _ policy: HeartbeatPolicy) -> LearnedHeartbeat {
        let known = learned ?? LearnedHeartbeat(interval: policy.interval)
        return policy.adaptation.map { known.clamped(to: $0) } ?? known
    }
}
