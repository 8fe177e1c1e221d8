// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import Hermes

/// 10,000 real state machines, a manual clock, and a server that has lost all connections at the same moment.
@Suite(.inTurns) struct ReconnectStormTests {
    /// The times for which the server is down, in seconds.
    static let outages: [Int64] = [0, 2, 7, 15, 40, 100, 300, 1500]

    @Test(arguments: outages, [Fleet.Failure.atOnce, .afterTenSeconds])
    func `no second sees more than one and a half times the even rate`(outage: Int64, failure: Fleet.Failure) {
        var fleet = Fleet(policy: .standard)
        fleet.cut { machine, now in machine.connectionClosed(Fleet.error, now: now) }
        let logins = fleet.run(serverIsBackAfter: .seconds(outage), failure: failure)
        #expect(logins.reduce(0, +) == Fleet.size)
        // The even rate is the rate of the first windows, in which each client makes one try within 15 s.
        let even = Double(Fleet.size) / 15
        #expect(Double(logins.max() ?? 0) <= 1.5 * even)
    }

    @Test func `those cut off fill the window evenly`() {
        var fleet = Fleet(policy: .standard)
        fleet.cut { machine, now in machine.connectionClosed(Fleet.error, now: now) }
        let logins = fleet.run(serverIsBackAfter: .zero, failure: .atOnce)
        #expect(logins.count == 15)
        #expect(logins.allSatisfy { (500...833).contains($0) })
    }

    @Test func `a server's ticket is obeyed by everyone`() {
        var fleet = Fleet(policy: .standard)
        let other = ServerAddress.Endpoint(host: "other.example", port: 9000)
        fleet.cut { machine, now in
            let advice = Machine.Advice(notBefore: .seconds(30), window: .seconds(60), endpoint: other)
            _ = machine.kicked(Fleet.error, mayReturn: true, advice: advice, now: now)
            machine.connectionClosed(Fleet.error, now: now)
            // A change of the network does not make the try come earlier.
            let elsewhere = DeviceConditions.Snapshot(path: NetworkPath(label: "elsewhere"))
            #expect(machine.conditionsChanged(elsewhere, now: now) == [])
        }
        let logins = fleet.run(serverIsBackAfter: .zero, failure: .atOnce)
        #expect(logins.prefix(30).allSatisfy { $0 == 0 })
        #expect(fleet.endpoints == [other])
        #expect(logins.reduce(0, +) == Fleet.size)
    }

    @Test(arguments: [0, 1, 2, 3])
    func `all who have a ticket are back within its window, though the server misses its begin`(
        outage: Int64
    ) {
        var fleet = Fleet(policy: .standard)
        fleet.cut { machine, now in Self.restart(&machine, now) }
        let logins = fleet.run(serverIsBackAfter: .seconds(outage), failure: .atOnce)
        #expect(logins.reduce(0, +) == Fleet.size)
        #expect(logins.count == 15)
        #expect(Double(logins.max() ?? 0) <= 1.5 * Double(Fleet.size) / 15)
    }

    @Test(arguments: outages + [4, 5, 10, 14], [Fleet.Failure.atOnce, .afterTenSeconds])
    func `the rest of a ticket's window is not stormed by those whom it failed`(
        outage: Int64,
        failure: Fleet.Failure
    ) {
        var fleet = Fleet(policy: .standard)
        fleet.cut { machine, now in Self.restart(&machine, now) }
        let logins = fleet.run(serverIsBackAfter: .seconds(outage), failure: failure)
        #expect(logins.reduce(0, +) == Fleet.size)
        #expect(Double(logins.max() ?? 0) <= 1.5 * Double(Fleet.size) / 15)
    }

    /// Makes the server announce its end with a window of 15 s, and end.
    private static func restart(_ machine: inout Machine, _ now: NIODeadline) {
        machine.shutdownAnnounced(Machine.Advice(notBefore: .zero, window: .seconds(15)), now: now)
        machine.connectionClosed(Fleet.error, now: now)
    }

    @Test func `a server that sends everyone away at once, time and again, is not stormed`() {
        var machine = StateMachineTests.machine(in: .live)
        var now = StateMachineTests.start
        var tries = 0
        while now < StateMachineTests.start + .minutes(10) {
            _ = machine.kicked(
                Fleet.error,
                mayReturn: true,
                advice: Machine.Advice(notBefore: .zero, window: .zero),
                now: now
            )
            machine.connectionClosed(Fleet.error, now: now)
            now = max(now, machine.nextDeadline ?? now)
            _ = machine.deadlineReached(now: now)
            _ = machine.connected(now: now)
            _ = machine.authenticated(now: now)
            tries += 1
        }
        #expect(tries <= 14)
    }
}

/// Machines that were all live when the server lost their connections.
struct Fleet {
    enum Failure: CaseIterable {
        /// The server's host refuses connections.
        case atOnce
        /// The server's host does not answer.
        case afterTenSeconds
    }

    static let size = 10_000
    static let error = HermesClientError(.connectionLost, "cut off")
    /// The moment at which the connections are lost.
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    /// The time resolution of the events.
    static let tick = TimeAmount.milliseconds(10)

    private var machines: [Machine]
    /// The endpoints of the logins that the server has redirected.
    private(set) var endpoints: Set<ServerAddress.Endpoint> = []

    init(policy: ReconnectPolicy) {
        machines = (0..<Self.size).map { number in
            var machine = Machine(heartbeat: .push, reconnect: policy, seed: UInt64(number))
            let connected = Self.start - .minutes(1)
            _ = machine.startRequested()
            _ = machine.connected(now: connected)
            _ = machine.authenticated(now: connected)
            return machine
        }
    }

    mutating func cut(_ body: (inout Machine, NIODeadline) -> Void) {
        for index in machines.indices { body(&machines[index], Self.start) }
    }

    /// Lets time pass until all machines are logged in again.
    ///
    /// - Returns: the number of logins in each second since the loss.
    mutating func run(serverIsBackAfter outage: TimeAmount, failure: Failure) -> [Int] {
        var due: [Int: [Int]] = [:]
        func tick(of deadline: NIODeadline) -> Int {
            Int((deadline - Self.start).nanoseconds / Self.tick.nanoseconds) + 1
        }
        func plan(_ index: Int) {
            guard let deadline = machines[index].nextDeadline else { return }
            due[tick(of: deadline), default: []].append(index)
        }
        for index in machines.indices { plan(index) }
        var failing: [Int: [Int]] = [:]
        var logins: [Int] = []
        var away = machines.count
        var moment = 0
        while away > 0, moment < 1_000_000 {
            moment += 1
            let now = Self.start + .nanoseconds(Int64(moment) * Self.tick.nanoseconds)
            for index in failing.removeValue(forKey: moment) ?? [] {
                machines[index].connectFailed(Self.error, now: now)
                plan(index)
            }
            for index in due.removeValue(forKey: moment) ?? [] {
                for case .connect(let endpoint) in machines[index].deadlineReached(now: now) {
                    if now - Self.start >= outage {
                        if let endpoint { endpoints.insert(endpoint) }
                        _ = machines[index].connected(now: now)
                        _ = machines[index].authenticated(now: now)
                        let second = (moment - 1) * Int(Self.tick.nanoseconds) / 1_000_000_000
                        while logins.count <= second { logins.append(0) }
                        logins[second] += 1
                        away -= 1
                    } else {
                        let wait = failure == .atOnce ? 1 : 1000
                        failing[moment + wait, default: []].append(index)
                    }
                }
            }
        }
        return logins
    }
}
