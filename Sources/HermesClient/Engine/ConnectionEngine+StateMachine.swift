// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// What all protocols' connections have in common: the machine that decides, and the table of unanswered requests.
enum ConnectionEngine {}

extension ConnectionEngine {
    /// Decides when to connect, log in, beat, give up and come back. Does no IO; time is passed in.
    ///
    ///     idle -> connecting -> authenticating -> live -> lost -> waiting -> connecting …
    ///                                               any state -> (lost ->) stopped
    ///
    /// There is one connection at most: in `lost` the machine waits until the old one is closed.
    struct StateMachine: Sendable {
        /// What the owner is to do.
        enum Action: Hashable, Sendable {
            /// Open a connection, to the endpoint if that succeeds; report `connected` or `connectFailed`.
            case connect(preferring: ServerAddress.Endpoint?)
            /// Log in; report `authenticated` or `authenticationRefused`.
            case authenticate
            /// Requests may be sent now, the waiting ones first.
            case becameLive
            /// Send a heartbeat.
            case sendHeartbeat
            /// Close the connection; report `connectionClosed`.
            case close
            /// Close the connection that is being opened, should it open; nothing is to be reported of it any more.
            case abandon
        }

        typealias Advice = ConnectionEngine.Advice
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
            /// When the last heartbeat went out, or what counts as one.
            var lastWritten: NIODeadline
            var heartbeat: Heartbeat
            /// The server asked us to leave at this moment.
            var leaveAt: Slot?
            /// When to come back once the server has closed the connection, as it advised.
            var returnAt: Slot?
        }

        struct Waiting: Hashable, Sendable {
            /// Why there is no connection.
            var error: HermesClientError
            /// The next try comes then.
            var until: NIODeadline
            /// The server does not want us sooner, whatever happens.
            var earliest: NIODeadline
            /// How long that is from the loss on.
            var delay: Duration
        }

        enum Heartbeat: Hashable, Sendable {
            /// The next one goes out then.
            case due(NIODeadline)
            /// One went out and is unanswered; `tries` counts those in a row.
            case unanswered(until: NIODeadline, tries: Int, evidence: Evidence)
        }

        /// What becomes of a heartbeat tells something about the network's patience with silence.
        enum Evidence: Hashable, Sendable {
            /// Nothing: it was sent out of turn.
            case none
            /// Its failure only: it came after less silence than the learned interval, or one before it was lost.
            case failure
            /// Its success, too.
            case both
        }

        /// What comes once the lost connection is closed.
        enum Next: Hashable, Sendable {
            /// It was no failure: a try as soon as the conditions allow.
            case atOnce
            case byPolicy
            case at(Slot)
            case stop(HermesClientError?)
        }

        private(set) var state = State.idle
        private(set) var conditions: DeviceConditions.Snapshot
        private let heartbeat: HeartbeatPolicy
        /// The longest interval that the server stands.
        private var serverLimit: Duration?
        /// What is known of the present network.
        private(set) var learned: LearnedHeartbeat
        /// What to add to the uptime for the date, in seconds since 1970.
        private var dateOffset: Int64 = 0
        private var schedule: ReconnectSchedule
        /// Where the server sent us; until a login succeeded.
        private var redirection: ServerAddress.Endpoint?
        private let authenticationTimeout: Duration

        /// A connection that lived this long was well: the count of failures starts anew.
        static let wellAfter = Duration.seconds(10)
        /// A timer that is this much late means that the process did not run, and says nothing about the server.
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

/// What the owner asks for, and time.
extension ConnectionEngine.StateMachine {
    /// How many tries failed since the connection last was well.
    var failures: Int { schedule.failures }

    /// When `deadlineReached` is to be called; nil: not needed.
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

    /// The app wants a connection.
    mutating func startRequested() -> [Action] {
        switch state {
        case .idle, .stopped:
            schedule.startAnew()
            return connect()
        case .lost(let error, next: .stop):
            // Closed and started again before the old connection was gone.
            state = .lost(error, next: .byPolicy)
            return []
        case .connecting, .authenticating, .live, .lost, .waiting:
            return []
        }
    }

    /// The app wants no connection any more.
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

    /// The app or the network may have changed.
    ///
    /// - Parameter known: what is known of the network.
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

    /// Ends the connection, for the app will not be there to keep it.
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

    /// Finds out at once whether the connection is well, with one heartbeat, or tries at once to get one.
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

    /// `nextDeadline` may have come; early calls are harmless.
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

/// What the connection reports.
extension ConnectionEngine.StateMachine {
    /// The connection is open.
    mutating func connected(now: NIODeadline) -> [Action] {
        switch state {
        case .connecting:
            state = .authenticating(until: now + TimeAmount(authenticationTimeout))
            return [.authenticate]
        case .lost:
            // Given up while it was being opened.
            return [.close]
        case .idle, .authenticating, .live, .waiting, .stopped:
            assertionFailure("connected in \(state)")
            return [.close]
        }
    }

    /// The connection could not be opened.
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

    /// The server knows an interval that is well in the present network; a client that knows better keeps its own.
    mutating func heartbeatSuggested(_ interval: Duration) {
        guard heartbeat.adaptation != nil, learned == Self.known(nil, heartbeat) else { return }
        learned = Self.known(LearnedHeartbeat(interval: interval), heartbeat)
    }

    /// The server accepted the login.
    ///
    /// - Parameters:
    ///   - heartbeatAtMost: the server wants a heartbeat at least so often.
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
            // A second answer, or one that crossed our close.
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("authenticated in \(state)")
            return []
        }
    }

    /// The server refused the login: for good unless the error says when trying again makes sense; then not before
    /// that, and spread over half as much time again.
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

    /// Anything came from the server.
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

    /// Anything went to the server, other than a heartbeat. It shows the server that the client is alive; that the server
    /// is alive only what comes from it shows.
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

    /// A request was not answered in time: unless something else came meanwhile, one heartbeat finds out at once whether
    /// anybody is there.
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

    /// The server told why it is about to close the connection: for good unless `mayReturn`.
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

    /// The server will close the connection soon and advised when to come back.
    mutating func shutdownAnnounced(_ advice: Advice, now: NIODeadline) {
        switch state {
        case .live(var live):
            live.returnAt = slot(advice, now: now)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// The server asked for a new connection in place of this one.
    mutating func reconnectAdvised(_ advice: Advice, now: NIODeadline) {
        switch state {
        case .live(var live):
            live.leaveAt = slot(advice, now: now)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// What came from the server broke the protocol, or the connection cannot be used any more.
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

    /// The connection is closed.
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

/// The interval of heartbeats.
extension ConnectionEngine.StateMachine {
    /// The time between two heartbeats: as learned, but no longer than the policy's in the foreground, nor than the server
    /// stands.
    private var interval: TimeAmount {
        var interval = heartbeat.interval
        if heartbeat.adaptation != nil {
            interval = conditions.appState == .foreground ? min(interval, learned.interval) : learned.interval
        }
        return TimeAmount(min(interval, serverLimit ?? interval))
    }

    /// When the next heartbeat is due: an interval after nothing came any more, or nothing went. Where heartbeats have no
    /// answers, what comes tells nothing.
    private func nextBeat(_ live: Live) -> NIODeadline {
        let last = heartbeat.answerTimeout == nil ? live.lastWritten : min(live.lastWritten, live.lastReceived)
        return last + interval
    }

    /// What a heartbeat that is due will tell: all, if nothing has come since the last one but its answer.
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
