// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite("The lease of a node", .inTurns, .timeLimit(.minutes(1))) struct ClusterLeaseTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let network = MemoryNetwork()

    private func core(_ places: SlowPlaces) async throws -> Messenger {
        let node = try await store.join(try #require(NodeID(rawValue: 0)))
        let core = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            time: time,
            bus: network.bus(of: node),
            placeStore: places
        )
        try await core.load()
        return core
    }

    @Test func `it is renewed however many nodes have left something behind`() async throws {
        let numbers: ClosedRange<UInt8> = 10...17
        let gone = try numbers.map { NodeIdentity(id: try #require(NodeID(rawValue: $0)), epoch: 1) }
        let places = SlowPlaces(store, time: time, gone: gone)
        let core = try await core(places)
        for _ in 0..<5 { await core.cluster?.work() }
        let renewals = places.renewals
        #expect(renewals.count > 4)
        for (last, next) in zip(renewals, renewals.dropFirst()) { #expect(next - last <= .seconds(2)) }
        await core.shutdown()
    }

    @Test func `a record that does not answer at all ends the connections`() async throws {
        try await addAccounts(1, to: store)
        let places = SlowPlaces(store, time: time, gone: [])
        let core = try await core(places)
        let member = try #require(core.cluster)
        let phone = RecordingAttachment(try principal(1))
        core.devices.attach(phone)
        places.hang()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await member.run() }
            defer { places.answer() }
            time.advance(by: ClusterMember.patience + .seconds(1))
            let start = ContinuousClock.now
            while phone.ends.isEmpty, start.duration(to: .now) < .seconds(20) {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(phone.ends == [.shuttingDown])
            group.cancelAll()
        }
        await core.shutdown()
    }
}

/// A record in which nodes have left more data than can ever be cleared. Clearing each part takes a second. The record
/// can stop answering.
private final class SlowPlaces: ForwardingPlaces {
    private struct State {
        var renewals: [Duration] = []
        var hangs = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let base: MemoryStore
    private let time: ManualTime
    private let gone: [NodeIdentity]
    private let state = Mutex(State())

    init(_ base: MemoryStore, time: ManualTime, gone: [NodeIdentity]) {
        self.base = base
        self.time = time
        self.gone = gone
    }

    /// The uptimes at which the lease was renewed.
    var renewals: [Duration] { state.withLock { $0.renewals } }

    /// Makes renewals wait until ``answer()`` is called.
    func hang() { state.withLock { $0.hangs = true } }

    func answer() {
        let waiting = state.withLock { state in
            state.hangs = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }

    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]? {
        let now = time.uptime()
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                state.renewals.append(now)
                if state.hangs { state.waiting.append(continuation) }
                return state.hangs
            }
            if !isHeld { continuation.resume() }
        }
        let left = gone.map { NodeLease(node: $0, renewals: 1, isIn: false, mustClear: true) }
        return try await base.renew(node).map { $0 + left }
    }

    func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval {
        guard gone.contains(node) else { return try await base.remove(node, removal, now: now, limit: limit) }
        time.advance(by: .seconds(1))
        return NodeRemoval()
    }
}
