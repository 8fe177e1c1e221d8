// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// The cost of finding the kept sessions of a topic and of a shared subscription, if there are many.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableRouteTests {
    private static let many = 800
    private let load = DurableLoad(owner: .subject("ann"))

    private func id(_ number: Int) -> DurableSessionID { DurableSessionID(rawValue: Int64(number + 1)) }

    private func insert(_ number: Int, _ filter: String, qos: QoS = .atLeastOnce, into index: inout DurableIndex) {
        index.insert(id(number), DurableSubscription(filter: filter, options: SubscriptionOptions(qos: qos)))
    }

    private func key(_ topic: String, _ index: DurableIndex) throws -> [UInt64] {
        index.matches(of: try #require(TopicName(topic))).key
    }

    @Test func `topics that match the same filters have one key, which no other filter changes`() throws {
        var index = DurableIndex()
        for number in 0..<Self.many { insert(number, "home/#", into: &index) }
        insert(0, "garden/+", into: &index)
        let home = try key("home/kitchen", index)
        #expect(try key("home/cellar", index) == home)
        #expect(try key("garden/pond", index) != home)
        insert(1, "garden/+", into: &index)
        index.remove(id(0), "garden/+")
        insert(2, "x/1", into: &index)
        #expect(try key("home/kitchen", index) == home)
        insert(Self.many, "home/#", into: &index)
        let more = try key("home/kitchen", index)
        #expect(more != home)
        index.remove(id(3), "home/#")
        #expect(try key("home/kitchen", index) != more)
    }

    @Test func `groups are compared byte by byte`() throws {
        var index = DurableIndex()
        insert(0, "$share/\u{E9}/t", into: &index)
        insert(1, "$share/e\u{301}/t", into: &index)
        let load: (DurableSessionID) -> DurableLoad? = { _ in DurableLoad(owner: .subject("ann")) }
        let groups = ["\u{E9}", "e\u{301}"].map { index.group("$share/\($0)/t", load: load)?.members.map(\.session) }
        #expect(groups == [[id(0)], [id(1)]])
    }

    @Test func `a place in the index that another filter takes over has another key`() throws {
        var index = DurableIndex()
        insert(0, "a", into: &index)
        let first = try key("a", index)
        index.remove(id(0), "a")
        insert(0, "b", into: &index)
        #expect(try key("b", index) != first)
    }

    @Test func `the targets are put together once for all topics, and again only after a change of their filters`()
        async throws
    {
        let store = FakeSessionStore()
        let now = Timestamp(rawValue: 1)
        let opened = try store.base.commit(
            (0..<Self.many).map {
                .open(SessionKey(owner: .subject("ann"), clientID: "\($0)"), clean: false, expiry: nil)
            },
            now: now
        )
        var ids: [DurableSessionID] = []
        for case .opened(let session) in opened { ids.append(session.id) }
        let subscription = DurableSubscription(filter: "home/#", options: SubscriptionOptions(qos: .atLeastOnce))
        _ = try store.base.commit(ids.map { .subscribe($0, [subscription]) }, now: now)
        _ = try store.base.commit(ids.map { .close($0, sentUpTo: 0, expiresAt: nil) }, now: now)
        let sessions = DurableSessions(store: store, time: ManualTime())
        try await sessions.load()

        func work(_ topic: String) throws -> Int { sessions.search(try #require(TopicName(topic))).work }
        #expect(try work("home/0") >= Self.many / 8)
        for number in 1..<50 { #expect(try (1..<20).contains(work("home/\(number)"))) }
        #expect(try work("home/1") == 0)
        // This is a filter of another client, and does not match these topics.
        let before = sessions.generation
        let other = try await sessions.attached("other")
        try await sessions.subscribed(other.opening.id, "x/1", SubscriptionOptions(qos: .atLeastOnce))
        #expect(sessions.generation != before)
        #expect(try (1..<20).contains(work("home/1")))
        try await sessions.subscribed(other.opening.id, "home/#", SubscriptionOptions(qos: .atLeastOnce))
        #expect(try work("home/1") >= Self.many / 8)
    }

    @Test func `routes to very many sessions are found again, and push no other routes out`() throws {
        var routes = DurableRoutes()
        let topic = try #require(TopicName("t"))
        let options = CombinedOptions(SubscriptionOptions(qos: .atLeastOnce))
        let member = DurableMember(session: id(0), options: options, load: load)
        func keep(_ count: Int, _ key: [UInt64]) {
            let targets = [DurableTarget](repeating: .session(member), count: count)
            routes.keep(DurableRoute(targets, generation: 1), to: topic, key)
        }
        func found(_ key: [UInt64]) -> Int? { routes.route(to: topic, key, generation: 1)?.targets.count }
        let tooMany = DurableRoutes.maxBytes / 96 + 1
        keep(1, [0, 1])
        for filter in 1...4 { keep(tooMany + filter, [UInt64(filter), 1]) }
        for filter in 1...4 { #expect(found([UInt64(filter), 1]) == tooMany + filter) }
        #expect(found([0, 1]) == 1)
        // A newer route of a filter replaces its older route. The route of the fifth filter replaces the route that was
        // found least recently.
        keep(tooMany, [1, 2])
        #expect(found([1, 1]) == nil && found([1, 2]) == tooMany && found([2, 1]) == tooMany + 2)
        keep(tooMany, [5, 1])
        #expect(found([3, 1]) == nil && found([5, 1]) == tooMany && found([2, 1]) == tooMany + 2)
        #expect(found([0, 1]) == 1)
    }

    @Test func `more than four large routes are found again, and a forgotten one takes only its own topics along`()
        throws
    {
        var routes = DurableRoutes()
        let topics = try (0...7).map { try #require(TopicName("\($0)")) }
        let options = CombinedOptions(SubscriptionOptions(qos: .atLeastOnce))
        let member = DurableMember(session: id(0), options: options, load: load)
        func keep(_ bytes: Int, _ number: Int) {
            let targets = [DurableTarget](repeating: .session(member), count: bytes / 96)
            routes.keep(DurableRoute(targets, generation: 1), to: topics[number], [UInt64(number), 1])
        }
        func isKnown(_ number: Int) -> Bool { routes.route(to: topics[number], generation: 1) != nil }
        func isFound(_ number: Int) -> Bool {
            routes.route(to: topics[number], [UInt64(number), 1], generation: 1) != nil
        }
        #expect(!isKnown(0))
        keep(96, 0)
        for number in 1...6 { keep(5_000_000, number) }
        for _ in 0..<2 { for number in 0...6 { #expect(isKnown(number) && isFound(number)) } }
        // The new route replaces the two routes that were found least recently.
        keep(4 * DurableRoutes.maxBytes - 4 * 5_100_000, 7)
        for number in 1...2 { #expect(!isKnown(number) && !isFound(number)) }
        for number in [0, 3, 4, 5, 6, 7] { #expect(isKnown(number) && isFound(number)) }
    }

    @Test func `sessions that get everything at most once are no targets`() throws {
        var index = DurableIndex()
        for number in 0..<Self.many { insert(number, "home/#", qos: .atMostOnce, into: &index) }
        insert(7, "home/+", into: &index)
        let targets = index.matches(of: try #require(TopicName("home/a"))).targets { _ in load }
        #expect(targets.count == 1)
        guard case .session(let member) = targets.first else { throw Failure() }
        #expect(member.session == id(7))
    }

    private struct Failure: Error {}

    @Test func `a shared subscription is put together once, and again after a change of its members`() throws {
        var index = DurableIndex()
        for number in 0..<Self.many { insert(number, "$share/g/t", into: &index) }
        let share = "$share/g/t"
        #expect(index.knownGroup(share) == nil)
        let found = index.group(share) { _ in load }
        let group = try #require(found)
        index.keep(group, of: share)
        #expect(index.knownGroup(share) === group)
        insert(0, "$share/h/t", into: &index)
        insert(0, "u", into: &index)
        #expect(index.knownGroup(share) === group)
        index.remove(id(5), share)
        #expect(index.knownGroup(share) == nil)
        let fewer = index.group(share) { _ in load }
        #expect(fewer?.members.count == Self.many - 1)
    }

    @Test func `a session that has ended is chosen no more, though lists contain it still`() throws {
        let options = CombinedOptions(SubscriptionOptions(qos: .atLeastOnce))
        let members = (0..<2).map { number in
            DurableMember(session: id(number), options: options, load: DurableLoad(owner: .subject("ann")))
        }
        let filter = try #require(TopicFilter("t"))
        let group = DurableGroup(name: "g", filter: filter, members: members, turn: DurableGroup.Turn())
        let publication = StoredPublication(
            topic: try #require(TopicName("t")),
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            publishedAt: Timestamp(rawValue: 1)
        )
        #expect(members[0].target(of: publication, from: nil) != nil)
        members[0].load.hasEnded.store(true, ordering: .relaxed)
        #expect(members[0].target(of: publication, from: nil) == nil)
        let others = DurableGroup.Exclusions(ended: true)
        for _ in 0..<4 {
            let choice = group.choose(for: publication, live: nil, in: nil, excluding: others)
            guard case .kept(let member) = choice else { throw Failure() }
            #expect(member.session == id(1))
        }
        #expect(group.hasMembers)
        members[1].load.hasEnded.store(true, ordering: .relaxed)
        #expect(group.choose(for: publication, live: nil, in: nil, excluding: others) == nil)
        #expect(!group.hasMembers)
    }
}
