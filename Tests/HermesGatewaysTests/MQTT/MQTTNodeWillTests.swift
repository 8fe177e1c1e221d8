// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Wills of clients of two nodes.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTNodeWillTests {
    @Test(arguments: [0, 30])
    func `the will of a client whose node vanishes is published by another node`(_ delay: UInt32) async throws {
        try await Nodes.run { nodes in
            let watch = try await nodes.watch(on: nodes.two)
            let client = try await nodes.client(on: nodes.one, delay: delay)
            // The first node is frozen.
            #expect(try await watch.untilPong().isEmpty)
            await nodes.pass(.seconds(9), only: nodes.two)
            if delay > 0 {
                #expect(try await watch.untilPong().isEmpty)
                await nodes.pass(.seconds(Int64(delay)), only: nodes.two)
            }
            #expect(try await nodes.taken(by: watch, only: nodes.two).text == "gone")
            // The node runs again, and its client disconnects.
            try await client.drop()
            await nodes.pass(.seconds(1))
            try await nodes.expectOnlyMarker(watch)
        }
    }

    @Test
    func `a client that comes back to another node takes its will back`() async throws {
        try await Nodes.run { nodes in
            let watch = try await nodes.watch(on: nodes.two)
            try await nodes.client(on: nodes.one, delay: 5).drop()
            while nodes.one.environment.waitingWills.entries == 0 { await Task.yield() }
            await nodes.pass(.seconds(1))
            let again = try await nodes.two.mqtt("client", .v5, durable: true)
            await nodes.pass(.seconds(6))
            try await nodes.eventually { nodes.one.environment.waitingWills.entries == 0 }
            try await nodes.expectOnlyMarker(watch)
            try await again.disconnect()
        }
    }

    @Test
    func `a client that begins a clean session on another node has its will published`() async throws {
        try await Nodes.run { nodes in
            let watch = try await nodes.watch(on: nodes.two)
            try await nodes.client(on: nodes.one, delay: 3_000).drop()
            while nodes.one.environment.waitingWills.entries == 0 { await Task.yield() }
            await nodes.pass(.seconds(1))
            _ = try await nodes.two.mqtt("client", .v5)
            try await nodes.eventually { nodes.one.environment.waitingWills.entries == 0 }
            #expect(try await nodes.taken(by: watch).text == "gone")
        }
    }

    @Test
    func `a node publishes the will of its own client once, and none after DISCONNECT`() async throws {
        try await Nodes.run { nodes in
            let watch = try await nodes.watch(on: nodes.two)
            try await nodes.client(on: nodes.one).disconnect()
            try await nodes.client(on: nodes.one).drop()
            #expect(try await nodes.taken(by: watch).text == "gone")
            await nodes.pass(.seconds(1))
            nodes.network.cut(nodes.firstNode)
            await nodes.pass(.seconds(9), only: nodes.two)
            await nodes.pass(.seconds(1), only: nodes.two)
            #expect(try await watch.untilPong().isEmpty)
        }
    }
}

/// Two brokers with one store and one bus. The test advances their clock.
private struct Nodes {
    let network: MemoryNetwork
    let clock: ManualClock
    let one: GatewayHarness
    let two: GatewayHarness
    let firstNode: NodeID

    static func run(_ body: (Nodes) async throws -> Void) async throws {
        let store = MemoryStore()
        let network = MemoryNetwork()
        let clock = ManualClock()
        let ids = try [1, 2].map { try #require(NodeID(rawValue: $0)) }
        let first = network.bus(of: try await store.join(ids[0]))
        let second = network.bus(of: try await store.join(ids[1]))
        try await GatewayHarness.with(MQTTGateway.self, store: store, bus: first, time: clock) { one in
            try await GatewayHarness.with(MQTTGateway.self, store: store, bus: second, time: clock) { two in
                try await one.messenger.load()
                try await two.messenger.load()
                let nodes = Nodes(
                    network: network,
                    clock: clock,
                    one: one,
                    two: two,
                    firstNode: ids[0]
                )
                await nodes.pass(.seconds(1))
                try await body(nodes)
            }
        }
    }

    /// Lets time pass, and lets the nodes work.
    ///
    /// - Parameter node: the only node that works; nil if both work.
    func pass(_ duration: Duration, only node: GatewayHarness? = nil) async {
        clock.advance(by: duration)
        network.advance(by: duration)
        for _ in 0..<3 {
            for harness in node.map({ [$0] }) ?? [one, two] { await harness.messenger.cluster?.work() }
            network.settle()
        }
    }

    /// Waits until a condition becomes true because of work on other threads.
    func eventually(_ isTrue: () async throws -> Bool) async throws {
        while !(try await isTrue()) {
            await pass(.zero)
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Expects that no will arrives before a marker, which this function publishes as a will.
    func expectOnlyMarker(_ watch: MQTTTestClient) async throws {
        await pass(.zero)
        let will = MQTTWill(topic: "will", payload: ByteBuffer(string: "marker"))
        try await two.mqtt("marker", .v5, will: will).drop()
        #expect(try await taken(by: watch).text == "marker")
    }

    func watch(on harness: GatewayHarness) async throws -> MQTTTestClient {
        let client = try await harness.mqtt("watch", .v5)
        _ = try await client.subscribe("will")
        await pass(.zero)
        return client
    }

    /// Connects a client whose will is in the record.
    func client(on harness: GatewayHarness, delay: UInt32 = 0) async throws -> MQTTTestClient {
        let properties: MQTTProperties = delay > 0 ? [.willDelayInterval(delay)] : []
        let will = MQTTWill(topic: "will", payload: ByteBuffer(string: "gone"), properties: properties)
        let client = try await harness.mqtt("client", .v5, durable: delay > 0, will: will)
        await pass(.zero)
        return client
    }

    /// Returns the next PUBLISH, and lets the nodes work until it arrives.
    ///
    /// - Parameter node: the only node that works; nil if both work.
    func taken(by client: MQTTTestClient, only node: GatewayHarness? = nil) async throws -> MQTTPublish {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    await pass(.zero, only: node)
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            defer { group.cancelAll() }
            return try await client.taken()
        }
    }
}
