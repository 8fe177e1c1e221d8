// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Testing

@testable import Hermes

/// The real state machine behind a NAT that drops silent connections.
@Suite struct AdaptiveHeartbeatTests {
    /// The timeouts of the NATs, in seconds.
    static let timeouts: [Int64] = [30, 41, 60, 90, 120, 150, 200, 240, 300, 420, 600]

    /// In the worst case, the rule tries 120 s, 40 s, 25 s and 85 s, each twice.
    static let mostDeaths = 6

    @Test(arguments: timeouts, NAT.Behaviour.allCases)
    func `an interval under the time-out is found and kept`(timeout: Int64, behaviour: NAT.Behaviour) {
        for messages in [nil, TimeAmount.minutes(7), .minutes(45)] {
            var world = World(.adaptive, NAT(timeout: .seconds(timeout), behaviour: behaviour), messages: messages)
            world.run(for: .hours(3 * 24))
            #expect(world.deaths.count <= Self.mostDeaths)
            // All connections are lost within the first day.
            #expect(world.deaths.allSatisfy { $0 - World.start < .hours(24) })
            let found = world.machine.learned.interval
            #expect(found <= .seconds(timeout))
            // The interval is at most one retreat below the failed interval, or is at the upper bound.
            let enough = min(.seconds(timeout), .seconds(580) + HeartbeatAdaptation.retreat)
            // The silence is never longer than the time between two messages, so longer intervals remain untested.
            if messages != .minutes(7) { #expect(found >= enough - HeartbeatAdaptation.retreat) }
            #expect(world.machine.published == .live)
        }
    }

    @Test(arguments: NAT.Behaviour.allCases)
    func `a fixed interval of 120 s dies under 30 s, every time`(behaviour: NAT.Behaviour) {
        var world = World(.push, NAT(timeout: .seconds(30), behaviour: behaviour))
        world.run(for: .hours(24))
        // Each cycle takes at most 120 s, the wait for three answers, and the window for reconnecting.
        #expect(world.deaths.count >= 24 * 3600 / (120 + 3 * 8 + 15))
    }

    @Test func `what was learned is used at the next launch`() {
        let nat = NAT(timeout: .seconds(30), behaviour: .silent)
        var first = World(.adaptive, nat)
        first.run(for: .hours(24))
        var second = World(.adaptive, nat, learned: first.machine.learned)
        second.run(for: .hours(24))
        #expect(second.deaths.isEmpty)
    }

    @Test func `a network that has become more patient is noticed after a week, at two deaths a week at most`() {
        var world = World(.adaptive, NAT(timeout: .seconds(60), behaviour: .silent))
        world.run(for: .hours(24))
        #expect(world.machine.learned.interval == .seconds(40))
        world.nat.timeout = .seconds(600)
        let deaths = world.deaths.count
        world.run(for: .hours(8 * 24))
        #expect(world.machine.learned.interval > .seconds(500))
        #expect(world.deaths.count == deaths)

        world = World(.adaptive, NAT(timeout: .seconds(30), behaviour: .silent))
        world.run(for: .hours(5 * 7 * 24))
        #expect(world.deaths.count <= Self.mostDeaths + 5 * 2)
    }

    @Test
    func `in the foreground nothing longer than the first guess is used, and what the server stands is never passed`() {
        let known = LearnedHeartbeat(interval: .seconds(300), isStable: true)
        for (state, limit, interval) in [
            (DeviceConditions.AppState.foreground, nil, 120), (.background, nil, 300), (.background, 200, 200),
            (.foreground, 50, 50),
        ] as [(DeviceConditions.AppState, Int64?, Int64)] {
            var machine = Machine(
                heartbeat: .adaptive,
                reconnect: .standard,
                conditions: .init(appState: state),
                learned: known,
                seed: 1
            )
            _ = machine.startRequested()
            _ = machine.connected(now: World.start)
            _ = machine.authenticated(heartbeatAtMost: limit.map { .seconds($0) }, now: World.start)
            #expect(machine.nextDeadline == World.start + .seconds(interval))
        }
    }

    @Test func `each network has its own interval`() {
        var world = World(.adaptive, NAT(timeout: .seconds(60), behaviour: .silent))
        world.run(for: .hours(1))
        #expect(world.machine.learned.interval == .seconds(40))
        let wifi = DeviceConditions.Snapshot(appState: .background, path: NetworkPath(label: "wifi"))
        _ = world.machine.conditionsChanged(wifi, now: world.now)
        #expect(world.machine.learned == LearnedHeartbeat(interval: .seconds(120)))
        let known = LearnedHeartbeat(interval: .seconds(9999), isStable: true)
        let cellular = DeviceConditions.Snapshot(appState: .background, path: NetworkPath(label: "cellular"))
        _ = world.machine.conditionsChanged(cellular, learned: known, now: world.now)
        #expect(world.machine.learned == LearnedHeartbeat(interval: .seconds(580), isStable: true))
    }

    @Test func `the rule, step by step`() {
        let bounds = HeartbeatAdaptation()
        var learned = LearnedHeartbeat(interval: .seconds(120))
        func succeed(_ count: Int, date: Int64 = 1) {
            for _ in 0..<count { learned.succeeded(within: bounds, date: date) }
        }
        func fail(_ count: Int) { for _ in 0..<count { learned.failed(within: bounds, date: 2) } }
        succeed(4)
        learned.interrupted()
        succeed(4)
        #expect(learned.interval == .seconds(120))
        succeed(1)
        #expect(learned.interval == .seconds(180))
        fail(1)
        succeed(1)
        fail(1)
        #expect(learned.interval == .seconds(180))
        fail(1)
        #expect(learned == LearnedHeartbeat(interval: .seconds(100), isStable: true, changedAt: 2))
        succeed(100)
        #expect(learned.interval == .seconds(100))
        succeed(1, date: 2 + 7 * 86_400)
        #expect(learned.interval == .seconds(120) && !learned.isStable)
        fail(2)
        fail(2)
        #expect(learned == LearnedHeartbeat(interval: .seconds(25), changedAt: 2))
        succeed(5 * 11)
        #expect(learned.interval == .seconds(580) && learned.isStable)
    }
}

/// A NAT that drops a connection if it is silent for longer than the timeout.
struct NAT {
    enum Behaviour: CaseIterable {
        /// The NAT drops all later data.
        case silent
        /// The NAT answers later data of the client with a reset.
        case reset
    }

    var timeout: TimeAmount
    let behaviour: Behaviour
    private var lastPacket = World.start
    private var isForgotten = false

    init(timeout: TimeAmount, behaviour: Behaviour) {
        self.timeout = timeout
        self.behaviour = behaviour
    }

    mutating func opened(now: NIODeadline) {
        lastPacket = now
        isForgotten = false
    }

    /// - Returns: whether the packet gets through.
    mutating func pass(now: NIODeadline) -> Bool {
        if now - lastPacket > timeout { isForgotten = true }
        lastPacket = now
        return !isForgotten
    }
}

/// A client in the background, a NAT, and a server that answers at once and sends a message from time to time.
struct World {
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    /// The time from the client to the server and back.
    static let roundTrip = TimeAmount.milliseconds(300)

    private(set) var now = Self.start
    var machine: Machine
    var nat: NAT
    /// The times at which connections were lost.
    private(set) var deaths: [NIODeadline] = []
    private let messages: TimeAmount?
    private var nextMessage: NIODeadline
    private var answer: NIODeadline?

    init(_ policy: HeartbeatPolicy, _ nat: NAT, messages: TimeAmount? = nil, learned: LearnedHeartbeat? = nil) {
        self.nat = nat
        self.messages = messages
        nextMessage = messages.map { Self.start + $0 } ?? .distantFuture
        machine = Machine(
            heartbeat: policy,
            reconnect: .standard,
            conditions: DeviceConditions.Snapshot(appState: .background),
            learned: learned,
            seed: 7
        )
        perform(machine.startRequested())
    }

    mutating func run(for time: TimeAmount) {
        let end = now + time
        while true {
            let next = min(machine.nextDeadline ?? .distantFuture, answer ?? .distantFuture, nextMessage)
            guard next < end else { break }
            now = max(now, next)
            if let due = answer, due <= now {
                answer = nil
                if nat.pass(now: now) { machine.bytesReceived(now: now) }
            } else if nextMessage <= now, let messages {
                nextMessage = nextMessage + messages
                if case .live = machine.published, nat.pass(now: now) { machine.bytesReceived(now: now) }
            } else {
                perform(machine.deadlineReached(now: now))
            }
        }
        now = end
    }

    private mutating func perform(_ actions: [Machine.Action]) {
        for action in actions {
            switch action {
            case .connect:
                nat.opened(now: now)
                perform(machine.connected(now: now))
            case .authenticate:
                let date = Int64(now.uptimeNanoseconds / 1_000_000_000)
                perform(machine.authenticated(date: date, now: now))
            case .becameLive, .abandon:
                break
            case .sendHeartbeat:
                if nat.pass(now: now) {
                    answer = now + Self.roundTrip
                } else if nat.behaviour == .reset {
                    close()
                }
            case .close:
                close()
            }
        }
    }

    private mutating func close() {
        deaths.append(now)
        answer = nil
        machine.connectionClosed(HermesClientError(.connectionLost, "reset"), now: now)
    }
}
