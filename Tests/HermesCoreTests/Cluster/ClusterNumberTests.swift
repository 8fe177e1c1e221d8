// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// Publications with numbers, from several cores.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterNumberTests {
    /// The cores that published each topic.
    private final class Publishers: Sendable {
        private let cores = Mutex<[TopicName: Set<Int>]>([:])

        func add(_ core: Int, _ topic: TopicName) { cores.withLock { _ = $0[topic, default: []].insert(core) } }

        func take() -> [TopicName: Set<Int>] {
            cores.withLock { cores in
                defer { cores = [:] }
                return cores
            }
        }
    }

    private let topics: [TopicName]

    init() throws { topics = try (0..<64).map { try #require(TopicName("news/\($0)")) } }

    private func publish(
        _ topic: TopicName,
        on core: Int,
        of world: ClusterWorld,
        _ publishers: Publishers
    ) async throws {
        let id = MessageID(high: 0, low: 1)
        let push = Push(id: id, content: PushContent(title: "t"), expiresAt: Timestamp(rawValue: .max))
        let publication = NumberedPublication.push(
            TopicPush(push, to: topic, expires: false, isJSON: true, retains: true)
        )
        let member = try #require(world.cores[core].cluster)
        guard let result = await member.publishElsewhere(publication) else { return publishers.add(core, topic) }
        #expect(try result.get() == true)
    }

    private func world(_ publishers: Publishers) async throws -> ClusterWorld {
        let world = try await ClusterWorld(people: 1)
        for (index, core) in world.cores.enumerated() {
            core.cluster?.publishNumbered { publication in
                publishers.add(index, publication.topic)
                return .success(true)
            }
        }
        return world
    }

    @Test
    func `each topic is numbered by one core, and the topics of a core that goes by the others`() async throws {
        let publishers = Publishers()
        let world = try await world(publishers)
        for topic in topics { for core in world.living { try await publish(topic, on: core, of: world, publishers) } }
        let before = publishers.take()
        #expect(before.count == topics.count)
        #expect(before.values.allSatisfy { $0.count == 1 })
        #expect(Set(before.values.joined()) == [0, 1, 2])
        try world.vanish(1)
        for _ in 0..<12 { await world.pass() }
        for topic in topics { for core in world.living { try await publish(topic, on: core, of: world, publishers) } }
        let after = publishers.take()
        #expect(after.values.allSatisfy { $0.count == 1 && !$0.contains(1) })
        for topic in topics where before[topic] != [1] { #expect(after[topic] == before[topic]) }
        await world.shutdown()
    }

    @Test
    func `a core that does not answer is named, and nothing is published in its place`() async throws {
        let publishers = Publishers()
        let world = try await world(publishers)
        try world.vanish(1)
        var errors: [HermesError] = []
        for topic in topics {
            do {
                try await publish(topic, on: 0, of: world, publishers)
            } catch let error as HermesError {
                errors.append(error)
            }
        }
        #expect(!errors.isEmpty)
        #expect(errors.allSatisfy { $0.code == .overloaded && $0.message.contains("Node 1") })
        #expect(publishers.take().count + errors.count == topics.count)
        await world.shutdown()
    }
}
