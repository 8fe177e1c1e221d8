// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesCore
import HermesWire
import NIOCore
import Synchronization
import Testing

@testable import HermesGateways

/// Success is told after the commit's success, and what waits for the store is bounded.
@Suite(.timeLimit(.minutes(1))) struct MQTTStorageTests {
    /// A store in memory whose commits fail or wait as a test wants.
    private final class Store: SessionStore {
        let base = MemoryStore()
        private let state = Mutex((commits: 0, failing: Set<Int>(), gate: DispatchSemaphore?.none))

        /// The commits from now on, counted from 1, that fail.
        func fail(_ numbers: Set<Int>) {
            state.withLock { state in
                state.commits = 0
                state.failing = numbers
            }
        }

        var commits: Int { state.withLock { $0.commits } }

        func close() { state.withLock { $0.gate = DispatchSemaphore(value: 0) } }

        func open() {
            let gate = state.withLock { state in
                defer { state.gate = nil }
                return state.gate
            }
            for _ in 0..<10 { gate?.signal() }
        }

        func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
            state.withLock { $0.gate }?.wait()
            // What clients have acknowledged is told lazily; nobody hears of it.
            let isLazy = operations.allSatisfy { if case .completed = $0 { true } else { false } }
            let fails = state.withLock { state in
                guard !isLazy else { return false }
                state.commits += 1
                return state.failing.contains(state.commits)
            }
            if fails { throw HermesError(.storageUnavailable, "the disk is full") }
            return try base.commit(operations, now: now)
        }

        func sessions() async throws(HermesError) -> [StoredSession] { try await base.sessions() }

        func queued(
            of id: DurableSessionID,
            after seq: UInt64,
            limit: Int,
            maxBytes: Int
        ) async throws(HermesError) -> [QueuedPublication] {
            try await base.queued(of: id, after: seq, limit: limit, maxBytes: maxBytes)
        }

        func shared(
            of id: DurableSessionID,
            after seq: UInt64,
            limit: Int,
            maxBytes: Int
        ) async throws(HermesError) -> [QueuedPublication] {
            try await base.shared(of: id, after: seq, limit: limit, maxBytes: maxBytes)
        }

        func retained() async throws(HermesError) -> [StoredPublication] { try await base.retained() }

        func purgeSessions(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
            try await base.purgeSessions(now: now, limit: limit)
        }

        // What a restarted server would find.

        func filters(_ clientID: String) async throws -> Set<String> {
            let session = try await base.sessions().first { $0.key.clientID == clientID }
            return Set(session?.subscriptions.map(\.filter) ?? [])
        }

        func texts(_ clientID: String) async throws -> [String] {
            guard let session = try await base.sessions().first(where: { $0.key.clientID == clientID }) else {
                return []
            }
            return try await base.queued(of: session.id, after: 0, limit: 100, maxBytes: .max)
                .map { String(buffer: $0.publication.payload) }
        }

        func retainedTexts() async throws -> Set<String> {
            Set(try await base.retained().map { String(buffer: $0.payload) })
        }
    }

    @Test("UNSUBACK says success once the store has forgotten the subscription", arguments: MQTTVersion.allCases)
    func unsubscribing(_ version: MQTTVersion) async throws {
        let store = Store()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("kept", version, durable: true)
            _ = try await client.subscribe("a", "b")
            store.fail([1])
            try await client.send(.unsubscribe(MQTTUnsubscribe(packetID: 5, filters: ["a", "never", "a"])))
            switch version {
            case .v311:
                #expect(try await client.untilEnd().isEmpty)
            case .v5:
                let reasons: [MQTTReasonCode] = [.unspecifiedError, .noSubscriptionExisted, .noSubscriptionExisted]
                #expect(try await client.next() == .unsuback(MQTTUnsuback(packetID: 5, reasons: reasons)))
                // It still gets what it is subscribed to.
                try await client.publish("a", "x", qos: .atMostOnce)
                #expect(try await client.taken().text == "x")
                #expect(try await client.unsubscribe("a").reasons == [.success])
                #expect(try await store.filters("kept") == ["b"])
            }
        }
    }

    /// What a client was told; checked against the store.
    private struct Told {
        var filters: Set<String> = []
        var gone: Set<String> = []
        var stored: [String] = []
        var retained: Set<String> = []
        var removed: Set<String> = []
    }

    @Test("Success is told after the commit's success, whichever commit fails", arguments: 1...12)
    func everyAcknowledgement(_ failing: Int) async throws {
        let store = Store()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let away = try await harness.mqtt("away", .v5, durable: true)
            _ = try await away.subscribe("t")
            try await away.disconnect()
            store.fail([failing])
            var told = Told()
            // An exchange that fails may end the connection; the next one begins anew.
            func step(_ body: (MQTTTestClient) async throws -> Void) async throws {
                let properties: [MQTTProperty] = [.sessionExpiryInterval(600)]
                let connect = MQTTConnect(
                    version: .v5,
                    clientID: "client",
                    cleanStart: false,
                    keepAlive: 60,
                    properties: MQTTProperties(properties)
                )
                guard let (client, connack) = try? await harness.apply(connect), connack.reason == .success else {
                    return
                }
                if try await store.base.sessions().allSatisfy({ $0.key.clientID != "client" }) {
                    Issue.record("CONNACK for a session that is not stored")
                }
                try? await body(client)
                try? await client.drop()
            }
            try await step { client in
                if try await client.subscribe("a").reasons == [.grantedQoS2] { told.filters.insert("a") }
                if try await client.unsubscribe("a").reasons == [.success] { told.gone.insert("a") }
                if try await client.subscribe("b").reasons == [.grantedQoS2] { told.filters.insert("b") }
            }
            try await step { client in
                if try await client.publish("t", "one").isSuccess { told.stored.append("one") }
                if try await client.publish("t", "two", qos: .exactlyOnce).isSuccess { told.stored.append("two") }
            }
            try await step { client in
                if try await client.publish("r", "kept", retain: true).isSuccess { told.retained.insert("kept") }
                if try await client.publish("r2", "gone", retain: true).isSuccess { told.retained.insert("gone") }
                if try await client.publish("r2", "", retain: true).isSuccess { told.removed.insert("gone") }
            }
            #expect(store.commits >= failing)
            let filters = try await store.filters("client")
            for filter in told.filters where !told.gone.contains(filter) && filter == "b" {
                #expect(filters.contains(filter))
            }
            for filter in told.gone { #expect(!filters.contains(filter)) }
            let texts = try await store.texts("away")
            for text in told.stored { #expect(texts.count { $0 == text } == 1, "\(text) was acknowledged") }
            let retained = try await store.retainedTexts()
            for text in told.retained.subtracting(told.removed) { #expect(retained.contains(text)) }
            for text in told.removed { #expect(!retained.contains(text)) }
        }
    }

    @Test(
        "A QoS 2 message that could not be stored reaches nobody, and its repetition everybody once",
        arguments: [false, true]
    )
    func notStored(retains: Bool) async throws {
        let store = Store()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe("t")
            let live = try await harness.mqtt("live", .v5)
            _ = try await live.subscribe("t")
            let publisher = try await harness.mqtt("publisher", .v5)
            store.fail([1])
            #expect(try await publisher.publish("t", "x", qos: .exactlyOnce, retain: retains).isFailure)
            for client in [live, kept] { #expect(try await client.untilPong().isEmpty) }
            for text in ["x", "y"] {
                let isRetained = retains && text == "x"
                #expect(try await publisher.publish("t", text, qos: .exactlyOnce, retain: isRetained).isSuccess)
                for client in [live, kept] {
                    #expect(try await client.taken().text == text)
                    #expect(try await client.untilPong().isEmpty)
                }
            }
        }
    }

    @Test("A QoS 2 message is told to be received once, after it is stored, however often it comes meanwhile")
    func sentAgainMeanwhile() async throws {
        let store = Store()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("client", .v5, durable: true)
            store.close()
            store.fail([1])
            let publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "x"), qos: .exactlyOnce, packetID: 7)
            try await client.send(.publish(publish), .publish(publish))
            #expect(try await client.untilPong().isEmpty)
            store.open()
            #expect(try await client.next() == .pubrec(MQTTAcknowledgement(packetID: 7, reason: .unspecifiedError)))
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test("Retained messages of QoS 0 wait at their client, not in memory")
    func flood() async throws {
        let store = Store()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let flooder = try await harness.mqtt("flooder", .v5)
            let other = try await harness.mqtt("other", .v5)
            store.close()
            let flood = Task {
                for number in 0..<2_000 {
                    let publish = MQTTPublish(
                        topic: "t/\(number % 1000)",
                        payload: ByteBuffer(repeating: 1, count: 8_192),
                        qos: .atMostOnce,
                        retain: true
                    )
                    try await flooder.send(.publish(publish))
                }
            }
            // Until nothing more comes in: some round trips of somebody else without a change.
            var (last, quiet) = (0, 0)
            while last == 0 || quiet < 50 {
                #expect(try await other.untilPong().isEmpty)
                let bytes = harness.messenger.durable.statistics.commits.waitingBytes
                quiet = bytes == last ? quiet + 1 : 0
                last = bytes
            }
            #expect(last <= ListenerState.maxUnansweredBytes + 65_536)
            store.open()
            try await flood.value
            #expect(try await flooder.untilPong().isEmpty)
            while harness.messenger.durable.statistics.commits.waiting > 0 { await Task.yield() }
            #expect(try await store.base.retained().count == 1000)
        }
    }
}

extension MQTTReasonCode {
    fileprivate var isSuccess: Bool { !isFailure }
}
