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
            /// Open a connection; report `connected` or `connectFailed`.
            case connect
            /// Log in; report `authenticated` or `authenticationRefused`.
            case authenticate
            /// Requests may be sent now, the waiting ones first.
            case becameLive
            /// Send a heartbeat.
            case sendHeartbeat
            /// Close the connection, or the one that is being opened; report `connectionClosed` or `connectFailed`.
            case close
        }

        /// What the server advises about coming back.
        struct Advice: Hashable, Sendable {
            /// Not before this much time has passed. At most an hour is obeyed.
            var notBefore: Duration
            /// At a random moment of the window that starts then. At most the policy's greatest window is obeyed.
            var window: Duration
        }

        enum State: Hashable, Sendable {
            case idle
            case connecting
            case authenticating(until: NIODeadline)
            case live(Live)
            case lost(HermesClientError, next: Next)
            case waiting(HermesClientError, until: NIODeadline, delay: Duration)
            case stopped(HermesClientError?)
        }

        struct Live: Hashable, Sendable {
            var since: NIODeadline
            var heartbeat: Heartbeat
            /// The server asked us to leave at this moment.
            var leaveAt: NIODeadline?
            /// When to come back once the server has closed the connection, as it advised.
            var returnAt: NIODeadline?
        }

        enum Heartbeat: Hashable, Sendable {
            /// The next one goes out then.
            case due(NIODeadline)
            /// One went out and is unanswered; `tries` counts those in a row.
            case unanswered(sentAt: NIODeadline, until: NIODeadline, tries: Int)
        }

        /// What comes once the lost connection is closed.
        enum Next: Hashable, Sendable {
            case byPolicy
            case at(NIODeadline)
            case stop(HermesClientError?)
        }

        private(set) var state = State.idle
        /// How many tries failed since the connection last was well.
        private(set) var failures = 0
        private let heartbeat: HeartbeatPolicy
        /// The time between two heartbeats of this connection.
        private var interval: TimeAmount
        private let reconnect: ReconnectPolicy
        private let authenticationTimeout: Duration
        private var random: SplitMix64

        /// A connection that lived this long was well: the count of failures starts anew.
        static let wellAfter = Duration.seconds(10)
        /// The longest advice that is obeyed.
        static let longestAdvice = Duration.seconds(3600)

        init(
            heartbeat: HeartbeatPolicy,
            reconnect: ReconnectPolicy,
            authenticationTimeout: Duration = .seconds(10),
            seed: UInt64
        ) {
            self.heartbeat = heartbeat
            interval = TimeAmount(heartbeat.interval)
            self.reconnect = reconnect
            self.authenticationTimeout = authenticationTimeout
            random = SplitMix64(state: seed)
        }
    }
}

/// What the owner asks for, and time.
extension ConnectionEngine.StateMachine {
    /// When `deadlineReached` is to be called; nil: not needed.
    var nextDeadline: NIODeadline? {
        switch state {
        case .idle, .connecting, .lost, .stopped: nil
        case .authenticating(let until): until
        case .waiting(_, let until, _): until
        case .live(let live):
            switch live.heartbeat {
            case .due(let at): min(at, live.leaveAt ?? at)
            case .unanswered(_, let until, _): min(until, live.leaveAt ?? until)
            }
        }
    }

    /// The app wants a connection.
    mutating func startRequested() -> [Action] {
        switch state {
        case .idle, .stopped:
            failures = 0
            state = .connecting
            return [.connect]
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
        case .connecting, .authenticating, .live:
            state = .lost(HermesClientError(.closed, "the client was closed"), next: .stop(nil))
            return [.close]
        case .lost(let error, next: .byPolicy), .lost(let error, next: .at):
            state = .lost(error, next: .stop(nil))
            return []
        case .lost(_, next: .stop), .stopped:
            return []
        }
    }

    /// The network changed, or the app came to the foreground: find out at once whether the connection is well.
    mutating func networkChanged(now: NIODeadline) -> [Action] {
        switch state {
        case .waiting:
            failures = 0
            state = .connecting
            return [.connect]
        case .live(let live):
            guard case .due = live.heartbeat, heartbeat.answerTimeout != nil else { return [] }
            return beat(live, tries: 1, now: now)
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
        case .waiting(_, let until, _):
            guard now >= until else { return [] }
            state = .connecting
            return [.connect]
        case .live(let live):
            if let leaveAt = live.leaveAt, now >= leaveAt {
                failures = 0
                return lose(HermesClientError(.kicked, "the server asked to reconnect"), next: .at(now))
            }
            switch live.heartbeat {
            case .due(let at):
                guard now >= at else { return [] }
                return beat(live, tries: 1, now: now)
            case .unanswered(_, let until, let tries):
                guard now >= until else { return [] }
                guard tries < heartbeat.tries else {
                    return lose(
                        HermesClientError(.timedOut, "the server did not answer \(tries) heartbeat(s)"),
                        next: afterLoss(live, now: now)
                    )
                }
                return beat(live, tries: tries + 1, now: now)
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

    /// The server accepted the login, and wants a heartbeat at least so often.
    mutating func authenticated(heartbeatAtMost: Duration? = nil, now: NIODeadline) -> [Action] {
        switch state {
        case .authenticating:
            interval = TimeAmount(min(heartbeat.interval, max(heartbeatAtMost ?? heartbeat.interval, .seconds(1))))
            state = .live(Live(since: now, heartbeat: .due(now + interval)))
            return [.becameLive]
        case .live, .lost:
            // A second answer, or one that crossed our close.
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("authenticated in \(state)")
            return []
        }
    }

    /// The server refused the login: for good unless the error says when trying again makes sense.
    mutating func authenticationRefused(_ error: HermesClientError, now: NIODeadline) -> [Action] {
        switch state {
        case .authenticating:
            guard let retryAfter = error.retryAfter, reconnect.delay(afterFailures: failures, random: 0) != nil else {
                return lose(error, next: .stop(error))
            }
            return lose(error, next: .at(now + TimeAmount(min(retryAfter, Self.longestAdvice))))
        case .live, .lost:
            return []
        case .idle, .connecting, .waiting, .stopped:
            assertionFailure("authenticationRefused in \(state)")
            return []
        }
    }

    /// Anything came from the server.
    mutating func bytesReceived() {
        switch state {
        case .live(var live):
            guard case .unanswered(let sentAt, _, _) = live.heartbeat else { return }
            live.heartbeat = .due(sentAt + interval)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Anything went to the server, other than a heartbeat.
    mutating func bytesWritten(now: NIODeadline) {
        switch state {
        case .live(var live):
            guard heartbeat.restartsOnWrite, case .due = live.heartbeat else { return }
            live.heartbeat = .due(now + interval)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
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
            if let advice {
                failures = 0
                return lose(error, next: .at(moment(of: advice, now: now)))
            }
            if case .live(let live) = state { return lose(error, next: afterLoss(live, now: now)) }
            return lose(error, next: .byPolicy)
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
            live.returnAt = moment(of: advice, now: now)
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// The server asked for a new connection in place of this one.
    mutating func reconnectAdvised(_ advice: Advice, now: NIODeadline) {
        switch state {
        case .live(var live):
            live.leaveAt = moment(of: advice, now: now)
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

    private mutating func beat(_ live: Live, tries: Int, now: NIODeadline) -> [Action] {
        var live = live
        if let answerTimeout = heartbeat.answerTimeout {
            live.heartbeat = .unanswered(sentAt: now, until: now + TimeAmount(answerTimeout), tries: tries)
        } else {
            live.heartbeat = .due(now + interval)
        }
        state = .live(live)
        return [.sendHeartbeat]
    }

    private mutating func afterLoss(_ live: Live, now: NIODeadline) -> Next {
        if now - live.since >= TimeAmount(Self.wellAfter) { failures = 0 }
        guard let returnAt = live.returnAt else { return .byPolicy }
        failures = 0
        return .at(returnAt)
    }

    private mutating func leaveLost(now: NIODeadline) {
        guard case .lost(let error, let next) = state else { return }
        switch next {
        case .stop(let reason):
            state = .stopped(reason)
        case .byPolicy:
            guard let delay = reconnect.delay(afterFailures: failures, random: random.nextFraction()) else {
                state = .stopped(error)
                return
            }
            failures += 1
            state = .waiting(error, until: now + TimeAmount(delay), delay: delay)
        case .at(let moment):
            guard reconnect.delay(afterFailures: failures, random: 0) != nil else {
                state = .stopped(error)
                return
            }
            failures += 1
            let until = max(now, moment)
            state = .waiting(error, until: until, delay: .nanoseconds((until - now).nanoseconds))
        }
    }

    private mutating func moment(of advice: Advice, now: NIODeadline) -> NIODeadline {
        let wait = min(advice.notBefore, Self.longestAdvice)
        let window = min(advice.window, reconnect.maxAdvisedWindow)
        return now + TimeAmount(wait + window * random.nextFraction())
    }
}

/// A small random number generator that is a value, so that a machine with the same seed decides the same.
struct SplitMix64: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A random number, at least 0 and below 1.
    mutating func nextFraction() -> Double { Double.random(in: 0..<1, using: &self) }
}
