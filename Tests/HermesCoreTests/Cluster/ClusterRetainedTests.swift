// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// Retained publications of several cores over one store.
@Suite struct ClusterRetainedTests {
    private func publication(_ text: String, to topic: String) throws -> StoredPublication {
        StoredPublication(
            topic: try #require(TopicName(topic)),
            payload: ByteBuffer(string: text),
            qos: .atLeastOnce,
            retain: true,
            details: nil,
            publishedAt: Timestamp(rawValue: 0)
        )
    }

    /// Retains a text, and returns when it is stored. An empty text removes the retained publication.
    private func retain(_ text: String, to topic: String, on core: Messenger) async throws {
        let publication = try publication(text, to: topic)
        let result: Result<Void, HermesError> = await withCheckedContinuation { continuation in
            core.durable.retain(publication) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Returns the retained publications that a core has, as "topic: text".
    private func seen(by core: Messenger) throws -> [String] {
        let all = try #require(TopicFilter("#"))
        return core.retained.matching(all, now: core.time.now())
            .map { "\($0.topic): \(String(buffer: $0.payload))" }
            .sorted()
    }

    private func work(_ world: ClusterWorld) async {
        for _ in 0..<3 {
            for index in world.living { await world.cores[index].cluster?.work() }
            world.network.settle()
        }
    }

    @Test func `what one core retains or removes, the others have or lose`() async throws {
        let world = try await ClusterWorld(people: 1)
        try await retain("one", to: "a", on: world.cores[0])
        try await retain("two", to: "b", on: world.cores[1])
        await work(world)
        for core in world.cores { #expect(try seen(by: core) == ["a: one", "b: two"]) }
        try await retain("three", to: "a", on: world.cores[2])
        try await retain("", to: "b", on: world.cores[0])
        await work(world)
        for core in world.cores {
            #expect(try seen(by: core) == ["a: three"])
            #expect(core.retained.statistics.count == 1)
        }
        await world.shutdown()
    }

    @Test func `what nobody could be told is read after the gap, and removals too`() async throws {
        let world = try await ClusterWorld(people: 1)
        try await retain("old", to: "a", on: world.cores[0])
        try await retain("gone", to: "b", on: world.cores[0])
        await work(world)
        world.network.set(.init(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0))
        try await retain("new", to: "a", on: world.cores[0])
        try await retain("", to: "b", on: world.cores[0])
        await work(world)
        #expect(try seen(by: world.cores[1]) == ["a: old", "b: gone"])
        world.network.set(.none)
        for _ in 0..<3 { await world.pass() }
        for core in world.cores { #expect(try seen(by: core) == ["a: new"]) }
        await world.shutdown()
    }

    @Test func `what a core stored before it vanished stays, and the others have it`() async throws {
        let world = try await ClusterWorld(people: 1)
        world.network.set(.init(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0))
        try await retain("last", to: "a", on: world.cores[0])
        try world.vanish(0)
        world.network.set(.none)
        for _ in 0..<12 { await world.pass() }
        #expect(try seen(by: world.cores[1]) == ["a: last"])
        #expect(try seen(by: world.cores[2]) == ["a: last"])
        await world.shutdown()
    }

    @Test(arguments: UInt64(1)...20)
    func `whatever gets lost, all cores agree with the record in the end`(seed: UInt64) async throws {
        let world = try await ClusterWorld(seed: seed, people: 1)
        var random = SplitMix(state: seed)
        world.network.set(.init(lost: 20, repeated: 20, unanswered: 20, maxDelayMilliseconds: 300))
        for step in 0..<60 {
            let core = world.cores[Int.random(in: 0..<3, using: &random)]
            let topic = "t/\(Int.random(in: 0..<5, using: &random))"
            let text = Int.random(in: 0..<4, using: &random) == 0 ? "" : "\(step)"
            try await retain(text, to: topic, on: core)
            if step % 3 == 0 { await world.pass(.milliseconds(100)) }
        }
        world.network.set(.none)
        for _ in 0..<4 { await world.pass() }
        let stored = try await world.store.retained().map { "\($0.topic): \(String(buffer: $0.payload))" }.sorted()
        for core in world.cores { #expect(try seen(by: core) == stored) }
        await world.shutdown()
    }

    // MARK: Reading during own writes

    private func messages() -> RetainedMessages {
        let limit = SharedLimit(1_000_000)
        return RetainedMessages(messages: limit, bytes: limit)
    }

    private func text(of topic: String, in retained: RetainedMessages) throws -> String? {
        retained.publication(of: try #require(TopicName(topic))).map { String(buffer: $0.payload) }
    }

    /// Reads these publications, as if the store contained them.
    private func read(_ found: [StoredPublication], of topics: [TopicName], into retained: RetainedMessages) {
        retained.beginReading()
        retained.learn(found, of: topics)
        retained.endReading()
    }

    private func outdated(in retained: RetainedMessages) -> TopicLog {
        let log = TopicLog()
        retained.outdated.observe { log.add($0) }
        return log
    }

    @Test func `what was read before an own write ended does not replace it, and is read again`() throws {
        let retained = messages()
        let outdated = outdated(in: retained)
        let (old, new) = (try publication("old", to: "a"), try publication("new", to: "a"))
        retained.beginReading()
        #expect(retained.begin(new))
        // The new publication may be stored before or after the reading.
        retained.learn([old], of: [old.topic])
        #expect(outdated.topics == [])
        retained.finish(new, isStored: true)
        #expect(outdated.topics == ["a"])
        retained.learn([old], of: [old.topic])
        #expect(outdated.topics == ["a", "a"])
        #expect(try text(of: "a", in: retained) == "new")
        retained.endReading()
        read([], of: [old.topic], into: retained)
        #expect(try text(of: "a", in: retained) == nil)
        #expect(retained.statistics.bytes == 0 && outdated.topics.count == 2)
    }

    @Test func `if an own write fails, what another core has stored is there`() throws {
        let retained = messages()
        let (own, other) = (try publication("own", to: "a"), try publication("other", to: "a"))
        read([other], of: [other.topic], into: retained)
        #expect(retained.begin(own))
        #expect(try text(of: "a", in: retained) == "own")
        retained.finish(own, isStored: false)
        #expect(try text(of: "a", in: retained) == "other")
    }

    @Test func `a topic whose own removal is under way is among those that are read`() throws {
        let retained = messages()
        let outdated = outdated(in: retained)
        let old = try publication("old", to: "a")
        read([old], of: [old.topic], into: retained)
        #expect(retained.begin(.removal(of: old.topic, at: Timestamp(rawValue: 1))))
        #expect(retained.topics == [old.topic])
        // Another core has removed the publication, and the removal by this core fails.
        read([], of: [old.topic], into: retained)
        retained.finish(.removal(of: old.topic, at: Timestamp(rawValue: 1)), isStored: false)
        #expect(outdated.topics == ["a"])
        read([], of: [old.topic], into: retained)
        #expect(try text(of: "a", in: retained) == nil)
        #expect(retained.topics.isEmpty)
    }

    @Test func `a search under way finds what another core has stored since`() throws {
        let retained = messages()
        let (first, second) = (try publication("1", to: "a"), try publication("2", to: "b"))
        #expect(retained.begin(first))
        var search = retained.search(try #require(TopicFilter("#")))
        retained.finish(first, isStored: false)
        read([first, second], of: [first.topic, second.topic], into: retained)
        var steps = Int.max
        let found = retained.next(&search, now: Timestamp(rawValue: 0), limit: 10, steps: &steps)
        #expect(Set(found.map(\.topic.rawValue)) == ["a", "b"])
    }

    @Test(arguments: [false, true])
    func `a search that began before a write failed finds what is there again`(isRemoval: Bool) throws {
        let retained = messages()
        let old = try publication("old", to: "a")
        #expect(retained.begin(old))
        retained.finish(old, isStored: true)
        let new = isRemoval ? .removal(of: old.topic, at: Timestamp(rawValue: 1)) : try publication("new", to: "a")
        var early = retained.search(try #require(TopicFilter("#")))
        #expect(retained.begin(new))
        var late = retained.search(try #require(TopicFilter("#")))
        retained.finish(new, isStored: false)
        var steps = Int.max
        let now = Timestamp(rawValue: 0)
        #expect(retained.next(&early, now: now, limit: 10, steps: &steps).map(\.payload) == [old.payload])
        #expect(retained.next(&late, now: now, limit: 10, steps: &steps).map(\.payload) == [old.payload])
    }

    /// Returns the links of a node that has no peers and a separate store.
    private func links(_ store: any SessionStore, _ retained: RetainedMessages) throws -> ReplicaLinks<RetainedReplica>
    {
        let node = NodeIdentity(id: try #require(NodeID(rawValue: 0)), epoch: 1)
        let roster = ClusterRoster(node, bus: LoneNode(), time: ManualTime())
        return ReplicaLinks(roster, retained, store: store)
    }

    @Test func `a call reads a bounded part, and further calls the rest`() async throws {
        let store = MemoryStore()
        let stored = try (0..<10_000).map { try publication("new", to: "s/\($0)") }
        _ = try store.commit(stored.map { .retain($0) }, now: Timestamp(rawValue: 0))
        let retained = messages()
        // The same number of publications are gone from the store.
        let gone = try (0..<10_000).map { try publication("old", to: "g/\($0)") }
        read(gone, of: gone.map(\.topic), into: retained)
        let links = try links(store, retained)
        links.missed()
        try await links.read()
        #expect(retained.statistics.count > 10_000)
        #expect(retained.publication(of: stored[9_999].topic) == nil)
        for _ in 0..<4 { try await links.read() }
        #expect(retained.topics == Set(stored.map(\.topic)))
    }

    @Test func `losses without end do not keep a full reading from its end`() async throws {
        let store = MemoryStore()
        let stored = try (0..<20_000).map { try publication("new", to: "s/\($0)") }
        _ = try store.commit(stored.map { .retain($0) }, now: Timestamp(rawValue: 0))
        let retained = messages()
        let links = try links(store, retained)
        for _ in 0..<2 {
            links.missed()
            try await links.read()
        }
        // Another core removes a publication that was read, and the message about this is lost. The repeated reading
        // finds the removal.
        let later = Timestamp(rawValue: 1)
        _ = try store.commit([.retain(.removal(of: stored[0].topic, at: later))], now: later)
        links.missed()
        try await links.read()
        #expect(retained.publication(of: stored[19_999].topic) != nil)
        #expect(retained.publication(of: stored[0].topic) != nil)
        for _ in 0..<4 { try await links.read() }
        #expect(retained.statistics.count == 19_999)
    }

    @Test func `what cannot be read is read by a later call`() async throws {
        let store = FakeSessionStore()
        let one = try publication("one", to: "a")
        _ = try store.base.commit([.retain(one)], now: Timestamp(rawValue: 0))
        let retained = messages()
        let links = try links(store, retained)
        for topics in [ChangedNames.some([one.topic]), .all] {
            store.failsToReadRetained = true
            links.told(topics)
            await #expect(throws: HermesError.self) { try await links.read() }
            await #expect(throws: HermesError.self) { try await links.read() }
            store.failsToReadRetained = false
            try await links.read()
            #expect(try text(of: "a", in: retained) == "one")
            read([], of: [one.topic], into: retained)
        }
    }

    @Test func `changed topics are told in parts, and beyond the limits all are meant`() throws {
        var pending = PendingChanges<TopicName>()
        #expect(pending.take() == nil)
        let topics = (0..<300).map { TopicName(checked: "t/\($0)") }
        pending.add(topics)
        pending.add(topics)
        var told: [TopicName] = []
        while case .some(let part)? = pending.take() {
            #expect(part.count <= PendingChanges<TopicName>.partLimit)
            told += part
        }
        #expect(told.count == 300 && Set(told) == Set(topics))
        let long = String(repeating: "x", count: 60_000)
        pending.add((0..<80).map { TopicName(checked: "\(long)\($0)") })
        #expect(pending.take() == .all)
        #expect(pending.take() == nil)
        pending.addAll()
        pending.add(topics)
        #expect(pending.take() == .all)
        #expect(pending.take() == nil)
    }
}

/// The topics in the order in which they were reported.
private final class TopicLog: Sendable {
    private let state = Mutex<[String]>([])

    var topics: [String] { state.withLock { $0 } }

    func add(_ topic: TopicName) { state.withLock { $0.append(topic.rawValue) } }
}
