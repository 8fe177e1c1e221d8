// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

typealias Machine = ConnectionEngine.StateMachine

/// Tests every event in every state.
@Suite struct StateMachineTests {
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    static let error = HermesClientError(.connectionLost, "gone")
    static let heartbeat = HeartbeatPolicy(interval: .seconds(100), answerTimeout: .seconds(8), tries: 2)
    static let reconnect = ReconnectPolicy(windows: [.seconds(10)], delays: [.seconds(60)], jitter: 0)

    /// The states, each reached by the events that lead there.
    enum Place: CaseIterable {
        case idle
        case connecting
        case authenticating
        case live
        case unanswered
        case lostByPolicy
        case lostAt
        case lostAtOnce
        case lostForGood
        case waiting
        /// The machine waits while there is no network.
        case held
        case stopped
    }

    enum Event: CaseIterable {
        case startRequested
        case stopRequested
        case foregrounded
        case backgrounded
        case suspended
        case pathChanged
        case pathLost
        case deadlineReached
        case connected
        case connectFailed
        case authenticated
        case refusedForGood
        case refusedForNow
        case bytesReceived
        case bytesWritten
        case requestExpired
        case kickedForGood
        case kickedForNow
        case shutdownAnnounced
        case reconnectAdvised
        case failed
        case connectionClosed
    }

    /// The state without its times, for comparisons.
    enum Kind: Equatable {
        case idle
        case connecting
        case authenticating
        case live
        case unanswered
        case lostByPolicy
        case lostAt
        case lostAtOnce
        case lostForGood
        case waiting
        case stopped

        init(_ state: Machine.State) {
            switch state {
            case .idle: self = .idle
            case .connecting: self = .connecting
            case .authenticating: self = .authenticating
            case .live(let live):
                if case .due = live.heartbeat { self = .live } else { self = .unanswered }
            case .lost(_, next: .byPolicy): self = .lostByPolicy
            case .lost(_, next: .at): self = .lostAt
            case .lost(_, next: .atOnce): self = .lostAtOnce
            case .lost(_, next: .stop): self = .lostForGood
            case .waiting: self = .waiting
            case .stopped: self = .stopped
            }
        }
    }

    static func machine(
        in place: Place,
        heartbeat: HeartbeatPolicy = heartbeat,
        reconnect: ReconnectPolicy = reconnect,
        seed: UInt64 = 1
    ) -> Machine {
        var machine = Machine(heartbeat: heartbeat, reconnect: reconnect, seed: seed)
        if place == .idle { return machine }
        _ = machine.startRequested()
        if place == .connecting { return machine }
        _ = machine.connected(now: start)
        if place == .authenticating { return machine }
        _ = machine.authenticated(now: start)
        switch place {
        case .idle, .connecting, .authenticating, .live: break
        case .unanswered: _ = machine.deadlineReached(now: start + .seconds(100))
        case .lostByPolicy: _ = machine.failed(error, now: start)
        case .lostAt:
            let advice = Machine.Advice(notBefore: .seconds(5), window: .zero)
            _ = machine.kicked(error, mayReturn: true, advice: advice, now: start)
        case .lostAtOnce:
            _ = machine.conditionsChanged(conditions(.suspended), now: start)
            _ = machine.conditionsChanged(conditions(), now: start)
        case .lostForGood: _ = machine.kicked(error, mayReturn: false, advice: nil, now: start)
        case .held:
            machine.connectionClosed(error, now: start)
            _ = machine.conditionsChanged(conditions(path: nowhere), now: start)
        case .waiting: machine.connectionClosed(error, now: start)
        case .stopped:
            _ = machine.kicked(error, mayReturn: false, advice: nil, now: start)
            machine.connectionClosed(error, now: start)
        }
        return machine
    }

    static let elsewhere = NetworkPath(label: "elsewhere")
    static let nowhere = NetworkPath(label: "none", isUsable: false)

    static func conditions(
        _ appState: DeviceConditions.AppState = .foreground,
        path: NetworkPath = .unknown
    ) -> DeviceConditions.Snapshot {
        DeviceConditions.Snapshot(appState: appState, path: path)
    }

    /// Applies an event long after every deadline. Returns nil if the event cannot happen in this state. Debug builds
    /// assert that such an event does not happen.
    static func apply(_ event: Event, to machine: inout Machine, in place: Place) -> [Machine.Action]? {
        let late = start + .hours(1)
        let hasNoConnection = [.idle, .waiting, .held, .stopped].contains(place)
        let isLost = [.lostByPolicy, .lostAt, .lostAtOnce, .lostForGood].contains(place)
        let path = place == .held ? nowhere : .unknown
        switch event {
        case .startRequested: return machine.startRequested()
        case .stopRequested: return machine.stopRequested()
        case .foregrounded:
            let first = machine.conditionsChanged(conditions(.background, path: path), now: start)
            return first + machine.conditionsChanged(conditions(path: path), now: start)
        case .backgrounded: return machine.conditionsChanged(conditions(.background, path: path), now: start)
        case .suspended: return machine.conditionsChanged(conditions(.suspended, path: path), now: start)
        case .pathChanged: return machine.conditionsChanged(conditions(path: elsewhere), now: start)
        case .pathLost: return machine.conditionsChanged(conditions(path: nowhere), now: start)
        case .deadlineReached: return machine.deadlineReached(now: late)
        case .connected:
            guard place == .connecting || isLost else { return nil }
            return machine.connected(now: start)
        case .connectFailed:
            guard place == .connecting || isLost else { return nil }
            machine.connectFailed(error, now: start)
            return []
        case .authenticated:
            guard !hasNoConnection, place != .connecting else { return nil }
            return machine.authenticated(now: start)
        case .refusedForGood:
            guard !hasNoConnection, place != .connecting else { return nil }
            return machine.authenticationRefused(error, now: start)
        case .refusedForNow:
            guard !hasNoConnection, place != .connecting else { return nil }
            let error = HermesClientError(.loginDelayed, "later", retryAfter: .seconds(7))
            return machine.authenticationRefused(error, now: start)
        case .bytesReceived:
            machine.bytesReceived(now: start)
            return []
        case .bytesWritten:
            machine.bytesWritten(now: start)
            return []
        case .requestExpired: return machine.requestExpired(now: start + .seconds(9))
        case .kickedForGood:
            guard !hasNoConnection, place != .connecting else { return nil }
            return machine.kicked(error, mayReturn: false, advice: nil, now: start)
        case .kickedForNow:
            guard !hasNoConnection, place != .connecting else { return nil }
            return machine.kicked(error, mayReturn: true, advice: nil, now: start)
        case .shutdownAnnounced:
            machine.shutdownAnnounced(Machine.Advice(notBefore: .seconds(3), window: .zero), now: start)
            return []
        case .reconnectAdvised:
            machine.reconnectAdvised(Machine.Advice(notBefore: .seconds(3), window: .zero), now: start)
            return []
        case .failed: return machine.failed(error, now: start)
        case .connectionClosed:
            machine.connectionClosed(error, now: start)
            return []
        }
    }

    /// The transitions; every other pair leaves the state unchanged and has no actions.
    static func expected(_ place: Place, _ event: Event) -> (Kind, [Machine.Action])? {
        switch (place, event) {
        case (.idle, .startRequested), (.stopped, .startRequested): (.connecting, [.connect(preferring: nil)])
        case (.lostForGood, .startRequested): (.lostByPolicy, [])
        case (.idle, .stopRequested), (.waiting, .stopRequested), (.held, .stopRequested): (.stopped, [])
        case (.connecting, .stopRequested): (.stopped, [.abandon])
        case (.authenticating, .stopRequested), (.live, .stopRequested), (.unanswered, .stopRequested):
            (.lostForGood, [.close])
        case (.lostByPolicy, .stopRequested), (.lostAt, .stopRequested), (.lostAtOnce, .stopRequested):
            (.lostForGood, [])
        case (.live, .foregrounded), (.live, .pathChanged): (.unanswered, [.sendHeartbeat])
        case (.waiting, .foregrounded), (.waiting, .pathChanged), (.held, .pathChanged):
            (.connecting, [.connect(preferring: nil)])
        case (.connecting, .suspended): (.waiting, [.abandon])
        case (.authenticating, .suspended), (.live, .suspended), (.unanswered, .suspended): (.lostAtOnce, [.close])
        case (.live, .requestExpired): (.unanswered, [.sendHeartbeat])
        case (.authenticating, .deadlineReached): (.lostByPolicy, [.close])
        case (.live, .deadlineReached), (.unanswered, .deadlineReached): (.unanswered, [.sendHeartbeat])
        case (.waiting, .deadlineReached): (.connecting, [.connect(preferring: nil)])
        case (.connecting, .connected): (.authenticating, [.authenticate])
        case (.lostByPolicy, .connected): (.lostByPolicy, [.close])
        case (.lostAt, .connected): (.lostAt, [.close])
        case (.lostAtOnce, .connected): (.lostAtOnce, [.close])
        case (.lostForGood, .connected): (.lostForGood, [.close])
        case (.lostAtOnce, .connectFailed), (.lostAtOnce, .connectionClosed): (.waiting, [])
        case (.connecting, .connectFailed), (.lostByPolicy, .connectFailed), (.lostAt, .connectFailed): (.waiting, [])
        case (.lostForGood, .connectFailed): (.stopped, [])
        case (.authenticating, .authenticated): (.live, [.becameLive])
        case (.authenticating, .refusedForGood): (.lostForGood, [.close])
        case (.authenticating, .refusedForNow): (.lostAt, [.close])
        case (.unanswered, .bytesReceived): (.live, [])
        case (.authenticating, .kickedForGood), (.live, .kickedForGood), (.unanswered, .kickedForGood):
            (.lostForGood, [.close])
        case (.authenticating, .kickedForNow), (.live, .kickedForNow), (.unanswered, .kickedForNow):
            (.lostByPolicy, [.close])
        case (.connecting, .failed), (.authenticating, .failed), (.live, .failed), (.unanswered, .failed):
            (.lostByPolicy, [.close])
        case (.connecting, .connectionClosed), (.authenticating, .connectionClosed), (.live, .connectionClosed),
            (.unanswered, .connectionClosed), (.lostByPolicy, .connectionClosed), (.lostAt, .connectionClosed):
            (.waiting, [])
        case (.lostForGood, .connectionClosed): (.stopped, [])
        default: nil
        }
    }

    @Test(arguments: Place.allCases, Event.allCases)
    func `every event in every state`(place: Place, event: Event) {
        var machine = Self.machine(in: place)
        let before = Kind(machine.state)
        #expect(place != .lostAtOnce || before == .lostAtOnce)
        guard let actions = Self.apply(event, to: &machine, in: place) else { return }
        let expected = Self.expected(place, event) ?? (before, [])
        #expect(actions == expected.1)
        #expect(Kind(machine.state) == expected.0)
    }

    @Test func `an unanswered heartbeat is tried as often as the policy says`() {
        var machine = Self.machine(in: .live)
        var now = Self.start + .seconds(100)
        #expect(machine.nextDeadline == now)
        #expect(machine.deadlineReached(now: now - .nanoseconds(1)) == [])
        #expect(machine.deadlineReached(now: now) == [.sendHeartbeat])
        now = now + .seconds(8)
        #expect(machine.nextDeadline == now)
        #expect(machine.deadlineReached(now: now) == [.sendHeartbeat])
        now = now + .seconds(8)
        #expect(machine.deadlineReached(now: now) == [.close])
        machine.connectionClosed(Self.error, now: now)
        guard case .waiting(let waiting) = machine.state else {
            Issue.record("not waiting")
            return
        }
        #expect(waiting.error.code == .timedOut)
    }

    @Test func `any byte answers a heartbeat, and a write replaces one only if something came, too`() {
        var machine = Self.machine(in: .unanswered)
        machine.bytesReceived(now: Self.start + .seconds(101))
        #expect(machine.nextDeadline == Self.start + .seconds(200))
        // The server would close the connection of a client that only receives.
        machine.bytesReceived(now: Self.start + .seconds(160))
        #expect(machine.nextDeadline == Self.start + .seconds(200))
        machine.bytesWritten(now: Self.start + .seconds(150))
        #expect(machine.nextDeadline == Self.start + .seconds(250))
        // A client that only writes would never notice that the server has ended.
        machine.bytesWritten(now: Self.start + .seconds(220))
        #expect(machine.nextDeadline == Self.start + .seconds(260))
    }

    @Test func `a client that goes on writing notices a server that is gone`() {
        var machine = Self.machine(in: .live)
        var now = Self.start
        var lost: NIODeadline?
        while lost == nil, now < Self.start + .seconds(1000) {
            now = now + .seconds(1)
            machine.bytesWritten(now: now)
            if machine.deadlineReached(now: now).contains(.close) { lost = now }
        }
        // The time is one interval plus two heartbeats of 8 s each.
        #expect(lost == Self.start + .seconds(116))
    }

    @Test func `after an expired request one unanswered heartbeat is enough, unless something came`() {
        var machine = Self.machine(in: .live)
        let now = Self.start + .seconds(30)
        machine.bytesReceived(now: now - .seconds(7))
        #expect(machine.requestExpired(now: now) == [])
        #expect(machine.requestExpired(now: now + .seconds(1)) == [.sendHeartbeat])
        #expect(machine.requestExpired(now: now + .seconds(2)) == [])
        #expect(machine.deadlineReached(now: now + .seconds(9)) == [.close])
    }

    @Test func `LiveRoom beats without answers, and writes replace none`() {
        var machine = Self.machine(in: .live, heartbeat: .liveRoom)
        let first = Self.start + .milliseconds(9500)
        machine.bytesWritten(now: Self.start + .seconds(5))
        #expect(machine.nextDeadline == first)
        #expect(machine.deadlineReached(now: first) == [.sendHeartbeat])
        #expect(machine.nextDeadline == first + .milliseconds(9500))
    }

    @Test func `a server that closes idle connections sooner gets heartbeats sooner`() {
        var machine = Self.machine(in: .authenticating)
        _ = machine.authenticated(heartbeatAtMost: .seconds(30), now: Self.start)
        #expect(machine.nextDeadline == Self.start + .seconds(30))
    }

    @Test func `failures lead from the windows to the delays, and a good connection starts anew`() {
        var machine = Self.machine(in: .live)
        machine.connectionClosed(Self.error, now: Self.start)
        #expect(machine.failures == 1)
        var now = Self.start
        for _ in 0..<3 {
            now = now + .seconds(100)
            _ = machine.deadlineReached(now: now)
            machine.connectFailed(Self.error, now: now)
        }
        guard case .waiting(let waiting) = machine.state else {
            Issue.record("not waiting")
            return
        }
        #expect(waiting.delay == .seconds(60))
        _ = machine.deadlineReached(now: now + .seconds(60))
        _ = machine.connected(now: now)
        _ = machine.authenticated(now: now)
        machine.connectionClosed(Self.error, now: now + .seconds(11))
        guard case .waiting(let waiting) = machine.state else {
            Issue.record("not waiting")
            return
        }
        #expect(waiting.delay <= .seconds(10))
        #expect(machine.failures == 1)
    }

    @Test func `advice is obeyed, within limits`() {
        var machine = Self.machine(in: .live)
        machine.shutdownAnnounced(Machine.Advice(notBefore: .seconds(20), window: .zero), now: Self.start)
        machine.connectionClosed(Self.error, now: Self.start + .seconds(5))
        #expect(machine.nextDeadline == Self.start + .seconds(20))

        machine = Self.machine(in: .live)
        machine.reconnectAdvised(Machine.Advice(notBefore: .seconds(20), window: .zero), now: Self.start)
        #expect(machine.nextDeadline == Self.start + .seconds(20))
        #expect(machine.deadlineReached(now: Self.start + .seconds(20)) == [.close])
        machine.connectionClosed(Self.error, now: Self.start + .seconds(21))
        #expect(machine.nextDeadline == Self.start + .seconds(21))

        machine = Self.machine(in: .live)
        let endless = Machine.Advice(notBefore: .seconds(4_000_000), window: .zero)
        _ = machine.kicked(Self.error, mayReturn: true, advice: endless, now: Self.start)
        machine.connectionClosed(Self.error, now: Self.start)
        #expect(machine.nextDeadline == Self.start + .hours(1))
    }

    @Test func `a try that fails early in an advised window is followed by one in the rest of it`() {
        let window = Duration.seconds(20)
        let end = Self.start + TimeAmount(window)
        var seconds = 0
        for seed in 0..<200 {
            var machine = Self.machine(in: .live, seed: UInt64(seed))
            machine.shutdownAnnounced(Machine.Advice(notBefore: .zero, window: window), now: Self.start)
            machine.connectionClosed(Self.error, now: Self.start)
            var now = Self.start
            while let next = machine.nextDeadline, next < end {
                #expect(next >= now)
                now = next
                #expect(machine.deadlineReached(now: now) == [.connect(preferring: nil)])
                machine.connectFailed(Self.error, now: now)
                if now - Self.start > .seconds(5) { break }
                seconds += 1
            }
            // The policy decides the next try. Its window comes after the advised window.
            let tries = machine.failures
            #expect(tries >= 2)
            #expect((machine.nextDeadline ?? now) >= end)
        }
        // Of 200 tries, a quarter fails in the first quarter of the window. Of these, about a fifth fails once more.
        #expect((35...90).contains(seconds))
    }

    @Test func `a client that came back within its window and is lost again goes by the policy`() {
        var machine = Self.machine(in: .live)
        machine.shutdownAnnounced(Machine.Advice(notBefore: .zero, window: .seconds(1000)), now: Self.start)
        machine.connectionClosed(Self.error, now: Self.start)
        let back = machine.nextDeadline ?? Self.start
        _ = machine.deadlineReached(now: back)
        _ = machine.connected(now: back)
        _ = machine.authenticated(now: back)
        let lost = back + .seconds(60)
        machine.connectionClosed(Self.error, now: lost)
        #expect((machine.nextDeadline ?? lost) < lost + .seconds(10))
    }

    @Test func `a suspended app has no connection and comes back at once, whatever the policy`() {
        for policy in [Self.reconnect, .never] {
            var machine = Self.machine(in: .live, reconnect: policy)
            #expect(machine.conditionsChanged(Self.conditions(.suspended), now: Self.start) == [.close])
            machine.connectionClosed(Self.error, now: Self.start)
            #expect(machine.nextDeadline == nil)
            #expect(machine.deadlineReached(now: Self.start + .hours(1)) == [])
            guard case .paused(let reason) = machine.published else {
                Issue.record("not paused")
                continue
            }
            #expect(reason.code == .suspended)
            let background = Self.conditions(.background)
            let later = Self.start + .hours(2)
            #expect(machine.conditionsChanged(background, now: later) == [.connect(preferring: nil)])
        }
    }

    @Test func `without a network nothing is tried, and neither app nor network overrule the server`() {
        var machine = Self.machine(in: .live)
        let advice = Machine.Advice(notBefore: .seconds(30), window: .seconds(60))
        _ = machine.kicked(Self.error, mayReturn: true, advice: advice, now: Self.start)
        machine.connectionClosed(Self.error, now: Self.start)
        #expect(machine.conditionsChanged(Self.conditions(path: Self.nowhere), now: Self.start) == [])
        #expect(machine.nextDeadline == nil)
        #expect(machine.conditionsChanged(Self.conditions(path: Self.elsewhere), now: Self.start) == [])
        #expect(machine.nextDeadline == Self.start + .seconds(30))
        #expect(machine.deadlineReached(now: Self.start + .seconds(30)) == [.connect(preferring: nil)])
    }

    @Test func `after a change one unanswered heartbeat is enough`() {
        var machine = Self.machine(in: .live)
        let now = Self.start + .seconds(50)
        #expect(machine.conditionsChanged(Self.conditions(path: Self.elsewhere), now: now) == [.sendHeartbeat])
        #expect(machine.deadlineReached(now: now + .seconds(8)) == [.close])
    }

    @Test func `a timer that comes much too late says nothing about the server`() {
        var machine = Self.machine(in: .live)
        var now = Self.start + .seconds(100)
        _ = machine.deadlineReached(now: now)
        _ = machine.deadlineReached(now: now + .seconds(8))
        now = now + .hours(1)
        #expect(machine.deadlineReached(now: now) == [.sendHeartbeat])
        #expect(machine.deadlineReached(now: now + .seconds(8)) == [.close])
    }

    @Test func `without tries left the first failure is final`() {
        var machine = Self.machine(in: .connecting, reconnect: .never)
        machine.connectFailed(Self.error, now: Self.start)
        #expect(machine.state == .stopped(Self.error))
        machine = Self.machine(in: .authenticating, reconnect: .never)
        let later = HermesClientError(.loginDelayed, "later", retryAfter: .seconds(7))
        _ = machine.authenticationRefused(later, now: Self.start)
        machine.connectionClosed(Self.error, now: Self.start)
        #expect(machine.state == .stopped(later))
    }

    @Test func `the standard delays`() {
        let policy = ReconnectPolicy.standard
        for failures in 0..<6 {
            #expect(policy.delay(afterFailures: failures, random: 0) == .zero)
            let most = policy.delay(afterFailures: failures, random: 0.999) ?? .zero
            #expect(most > .seconds(14) && most < .seconds(15))
        }
        let minutes = (6..<12).map { policy.delay(afterFailures: $0, random: 0.5) }
        #expect(minutes == [60, 120, 300, 600, 600, 600].map { .seconds($0) })
        #expect(policy.delay(afterFailures: 6, random: 0) == .seconds(48))
    }
}
