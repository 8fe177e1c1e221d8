// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The cases for every ``PlaceStore``.
package enum PlaceStoreConformance {
    package static let cases = places + wills

    private static let places = [
        ConformanceCase("A device has one place: the one that was claimed last") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let first = try await world.change([.claim(world.phone, connection: 1)], on: one)
            try expectEqual(first.map(\.taken), [nil])
            try expectEqual(first.map(\.presence?.isOnline), [true])
            let second = try await world.change([.claim(world.phone, connection: 9)], on: two)
            try expectEqual(second.map(\.taken), [DevicePlace(key: world.phone, node: one, connection: 1)])
            try expectEqual(second.map(\.presence), [nil])
            try expectEqual(try await world.connections(on: one), [])
            try expectEqual(try await world.connections(on: two), [9])
            // Releases of earlier connections change nothing, neither on the previous node nor on the present one.
            let late = try await world.change([.release(world.phone, connection: 1)], on: one)
            try expectEqual(late.map(\.presence), [nil])
            let earlier = try await world.change([.release(world.phone, connection: 8)], on: two)
            try expectEqual(earlier.map(\.presence), [nil])
            // A later connection ended before it could be claimed. Its release also releases the place of the earlier
            // connection.
            let last = try await world.change([.release(world.phone, connection: 10)], on: two)
            try expectEqual(last.map(\.presence?.isOnline), [false])
        },
        ConformanceCase("Each transition between no place and some is told once, with the next version") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let outcomes = try await world.change(
                [
                    .claim(world.phone, connection: 1), .claim(world.tablet, connection: 2),
                    .release(world.phone, connection: 1),
                ],
                on: one
            )
            try expectEqual(outcomes.map(\.presence?.version), [1, nil, nil])
            _ = try await world.change([.claim(world.phone, connection: 1)], on: two)
            let left = try await world.change([.release(world.tablet, connection: 2)], on: one)
            try expectEqual(left.map(\.presence), [nil])
            let online = try await world.places.online(after: nil, limit: 10)
            try expectEqual(online, [PresenceChange(user: world.phone.user, version: 1)])
            try expectEqual(try await world.places.online(after: world.phone.user, limit: 10), [])
            let gone = try await world.change([.release(world.phone, connection: 1)], on: two)
            try expectEqual(gone.map(\.presence?.version), [2])
            try expectEqual(try await world.places.online(after: nil, limit: 10), [])
        },
        ConformanceCase("A key is claimed by one process, whose last claim counts") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let (phone, user) = (HandOffKey(world.phone.user, world.phone.device), HandOffKey(world.phone.user, nil))
            try expectEqual(try await world.places.claim([phone, user], number: 1, on: one), [phone, user])
            try expectEqual(try await world.places.claim([phone], number: 7, on: two), [])
            // A release of another process, or of an earlier claim, changes nothing.
            try await world.places.release([phone: 1], on: two)
            try expectEqual(try await world.places.claim([phone], number: 2, on: one), [phone])
            try await world.places.release([phone: 1, user: 1], on: one)
            try expectEqual(try await world.places.claim([phone, user], number: 8, on: two), [user])
            try await world.places.release([phone: 2], on: one)
            try expectEqual(try await world.places.claim([phone], number: 9, on: two), [phone])
        },
        ConformanceCase("The claims of a process that was removed or replaced are void") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let (phone, tablet) = (
                HandOffKey(world.phone.user, world.phone.device), HandOffKey(world.tablet.user, world.tablet.device)
            )
            try expectEqual(try await world.places.claim([phone], number: 1, on: one), [phone])
            let next = try await world.join(1)
            try expectEqual(try await world.places.claim([phone], number: 1, on: two), [phone])
            try expectEqual(try await world.places.claim([phone, tablet], number: 2, on: one), nil)
            try expectEqual(try await world.places.claim([tablet], number: 1, on: next), [tablet])
            _ = try await world.remove(next)
            try expectEqual(try await world.places.claim([tablet], number: 2, on: two), [tablet])
        },
        ConformanceCase("A commit tells the nodes of each recipient") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            try expectEqual(try await world.nodesOfCommit("a"), NodeSet())
            _ = try await world.change([.claim(world.phone, connection: 1)], on: one)
            let claimed = try await world.change([.claim(world.tablet, connection: 1)], on: two)
            try expectEqual(claimed.map(\.head), [1])
            try expectEqual(try await world.nodesOfCommit("b"), [NodeSet(one.id), NodeSet(two.id)])
            _ = try await world.change([.release(world.phone, connection: 1)], on: one)
            try expectEqual(try await world.nodesOfCommit("c"), NodeSet(two.id))
        },
        ConformanceCase("A secret is that of its first proposal") { makeStore in
            let world = try await PlaceWorld(makeStore)
            try expectEqual(try await world.places.secret("a", proposal: [1]), [1])
            try expectEqual(try await world.places.secret("a", proposal: [2]), [1])
            try expectEqual(try await world.places.secret("b", proposal: [2]), [2])
        },
        ConformanceCase("A silent node is removed, and all of its places with it") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            _ = try await world.change([.claim(world.phone, connection: 1)], on: one)
            let before = try await world.leases(by: two)
            let after = try await world.leases(by: two)
            try expectEqual(zip(before, after).map { $0.renewals < $1.renewals }, [false, true])
            _ = try await world.places.renew(one)
            let kept = try await world.remove(one, .ifNotRenewed(since: after[0].renewals))
            try expect(kept.presence.isEmpty && kept.isDone)
            let seen = try await world.leases(by: two)[0].renewals
            let removed = try await world.remove(one, .ifNotRenewed(since: seen))
            try expectEqual(removed.presence.map(\.isOnline), [false])
            try expect(removed.isDone)
            let again = try await world.remove(one)
            try expect(again.presence.isEmpty && again.isDone, "told twice")
            // The removed process wakes up.
            try expectEqual(try await world.places.renew(one), nil)
            let claim = PlaceChange.claim(world.phone, connection: 2)
            try expectEqual(try await world.places.change([claim], on: one), nil)
            try expectEqual(try await world.places.renew(two)?.map(\.isIn), [false, true])
        },
        ConformanceCase("A new process of a node has another epoch, and clears what the old one left") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let old = try await world.join(1)
            _ = try await world.change(
                [.claim(world.phone, connection: 1), .claim(world.other, connection: 2)],
                on: old
            )
            let new = try await world.join(1)
            try expect(new.epoch > old.epoch)
            try expectEqual(try await world.places.renew(old), nil)
            _ = try await world.change([.claim(world.phone, connection: 1)], on: new)
            try expectEqual(try await world.places.renew(new)?.map(\.mustClear), [true])
            let cleared = try await world.remove(new, .no, limit: 1)
            try expectEqual(cleared.presence.map(\.user), [world.other.user])
            try expectEqual(try await world.connections(on: new), [1])
            try expectEqual(try await world.places.renew(new)?.map(\.mustClear), [false])
        },
        ConformanceCase("A kept session has one place: the node that opened it last") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let first = try world.opened(on: one)
            try expectEqual(first.place, SessionPlace(node: one, opening: 1, since: StoreWorld.now))
            let second = try world.opened(on: two)
            try expectEqual(second.place, SessionPlace(node: two, opening: 2, since: StoreWorld.now))
            // Operations of the first opening arrive too late.
            let move = QueueMove(from: first.id, [], condition: .opened(1), endsBehind: 0)
            for late: SessionOperation in [
                .close(first.id, sentUpTo: 0, expiresAt: nil, opening: 1), .remove(first.id, opening: 1), .move(move),
            ] {
                guard case .refused(let error) = try world.commit(late) else {
                    throw ConformanceFailure(description: "not refused: \(late)")
                }
                try expectEqual(error.code, StoreRefusals.openedElsewhere.code)
            }
            try expectEqual(try await world.places.sessions(of: [first.id]).map(\.place), [second.place])
            _ = try world.commit(.close(first.id, sentUpTo: 0, expiresAt: nil, opening: 2))
            let closed = try await world.places.sessions(of: [first.id])
            let nowhere = SessionPlace(node: nil, opening: 2, since: StoreWorld.now)
            try expectEqual(closed.map(\.place), [nowhere])
            _ = try world.commit(.remove(first.id, opening: 2))
            try expectEqual(try await world.places.sessions(of: [first.id]).count, 0)
        },
        ConformanceCase("A node that is removed leaves no session open") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            var ids: [DurableSessionID] = []
            for name in ["a", "b", "c"] { ids.append(try world.opened(name, expiry: .seconds(60), on: one).id) }
            let other = try world.opened("d", on: two).id
            var found: [DurableSessionID] = []
            repeat {
                let removal = try await world.remove(one, limit: 2)
                try expect(removal.sessions.count <= 2)
                found += removal.sessions
                if removal.isDone { break }
            } while true
            try expectEqual(found.sorted(), ids)
            let sessions = try await world.places.sessions(after: nil, limit: 10)
            try expectEqual(sessions.map(\.id), ids + [other])
            try expectEqual(sessions.map(\.place?.node), [nil, nil, nil, two])
            let end = StoreWorld.now.advanced(by: .seconds(60))
            try expectEqual(sessions.map(\.expiresAt), [end, end, end, nil])
            try expectEqual(try await world.places.sessions(after: ids[1], limit: 1).map(\.id), [ids[2]])
        },
        ConformanceCase("The version of a session's subscriptions changes with them") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let one = try await world.join(1)
            let id = try world.opened(on: one).id
            var versions: Set<UInt64> = []
            let subscription = DurableSubscription(filter: "a", options: SubscriptionOptions(qos: .atLeastOnce))
            for operation: SessionOperation? in [nil, .subscribe(id, [subscription]), .unsubscribe(id, ["a"])] {
                if let operation { _ = try world.commit(operation) }
                versions.formUnion(try await world.places.sessions(of: [id]).map(\.subscriptionsVersion))
            }
            try expectEqual(versions.count, 3)
        },
    ]

    private static let wills = [
        ConformanceCase("A will is published by the node that takes it, and by no other") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let will = try world.will(1, of: one)
            try expectEqual(try await world.change([.give(will)], on: one), [false])
            try expectEqual(try await world.change([.take(will.id)], on: two), [false])
            try expectEqual(try await world.change([.remove(will.id)], on: two), [false])
            // The node repeats the request, as it does if the answer was lost.
            try expectEqual(try await world.change([.take(will.id), .take(will.id)], on: one), [true, true])
            try expectEqual(try await world.change([.remove(will.id), .take(will.id)], on: one), [false, false])
        },
        ConformanceCase("The wills of a process that has gone are another's") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let delay = Duration.seconds(30)
            let shorter = Duration.seconds(5)
            let wills = try (1...4).map { try world.will($0, of: one, delay: delay) }
            _ = try await world.change(wills.map { .give($0) }, on: one)
            let states: [WillChange] = [.wait(wills[1].id, delay: shorter), .take(wills[2].id), .remove(wills[3].id)]
            _ = try await world.change(states, on: one)
            try expectEqual(try await world.inherited(of: one, by: two).count, 0)
            _ = try await world.remove(one)
            try expectEqual(try await world.places.renew(two)?.map(\.mustClear), [true, false])
            var left: [StoredWill] = []
            while true {
                let some = try await world.inherited(of: one, by: two, limit: 2)
                try expect(some.count <= 2)
                if some.isEmpty { break }
                left += some
            }
            left.sort { $0.id.number < $1.id.number }
            try expectEqual(left.map(\.id), wills.prefix(3).map(\.id))
            try expectEqual(left.map(\.state), [.gone, .gone, .due])
            try expectEqual(left.map(\.delay), [delay, shorter, delay])
            _ = try await world.remove(one)
            try expectEqual(try await world.places.renew(two)?.map(\.mustClear), [false, false])
            try expectEqual(try await world.change([.take(wills[0].id)], on: two), [true])
            // The removed process wakes up.
            try expectEqual(try await world.places.change([WillChange.take(wills[1].id)], on: one), nil)
            try expectEqual(try await world.places.inheritWills(of: two.id, by: one, limit: 1)?.count, nil)
        },
        ConformanceCase("A client that opens its session again takes its will back, unless it begins a clean one") {
            makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            for (number, name, isClean) in [(1, "kept", false), (2, "clean", true)] {
                let waiting = try world.will(UInt64(number), of: one, client: name, delay: .seconds(30))
                let immediate = try world.will(UInt64(number + 10), of: one, client: name)
                let present = try world.will(UInt64(number), of: two, client: name, delay: .seconds(30))
                let gone = WillChange.wait(waiting.id, delay: .seconds(30))
                _ = try await world.change([.give(waiting), gone, .give(immediate)], on: one)
                _ = try world.opened(name, clean: isClean, on: two)
                _ = try await world.change([.give(present)], on: two)
                let outcomes = try await world.change([.take(waiting.id), .take(immediate.id)], on: one)
                try expectEqual(outcomes, [isClean, true])
                try expectEqual(try await world.change([.take(present.id)], on: two), [true])
            }
        },
    ]
}

/// A store with places, two accounts and their devices.
private struct PlaceWorld {
    let places: any PlaceStore
    let world: StoreWorld
    let phone: DeviceKey
    let tablet: DeviceKey
    /// The device of another account.
    let other: DeviceKey

    init(_ makeStore: StoreMaker) async throws {
        let store = try await makeStore(StoreSettings())
        guard let places = store as? any PlaceStore else {
            throw ConformanceFailure(description: "the store has no places")
        }
        self.places = places
        world = try await StoreWorld(store: store, devices: [StoreWorld.phone, StoreWorld.tablet])
        phone = DeviceKey(world[0].user, StoreWorld.phone)
        tablet = DeviceKey(world[0].user, StoreWorld.tablet)
        other = DeviceKey(world[1].user, StoreWorld.phone)
    }

    func join(_ number: UInt8) async throws -> NodeIdentity {
        guard let id = NodeID(rawValue: number) else { throw ConformanceFailure(description: "no such node") }
        return try await places.join(id)
    }

    func change(_ changes: [PlaceChange], on node: NodeIdentity) async throws -> [PlaceOutcome] {
        guard let outcomes = try await places.change(changes, on: node) else {
            throw ConformanceFailure(description: "the node was removed")
        }
        try expectEqual(outcomes.count, changes.count)
        return outcomes
    }

    func remove(
        _ node: NodeIdentity,
        _ kind: LeaseRemoval = .yes,
        limit: Int = 10
    ) async throws -> NodeRemoval {
        try await places.remove(node, kind, now: StoreWorld.now, limit: limit)
    }

    func leases(by node: NodeIdentity) async throws -> [NodeLease] {
        guard let leases = try await places.renew(node) else {
            throw ConformanceFailure(description: "the node was removed")
        }
        return leases
    }

    func commit(_ operation: SessionOperation) throws -> SessionOutcome {
        guard let sessions = places as? any SessionStore else {
            throw ConformanceFailure(description: "the store has no sessions")
        }
        return try sessions.commit([operation], now: StoreWorld.now)[0]
    }

    func opened(
        _ name: String = "client",
        clean: Bool = false,
        expiry: Duration? = nil,
        on node: NodeIdentity
    ) throws -> StoredSession {
        let key = SessionKey(owner: .anonymous, clientID: name)
        guard case .opened(let session) = try commit(.open(key, clean: clean, expiry: expiry, on: node)) else {
            throw ConformanceFailure(description: "not opened")
        }
        return session
    }

    func will(
        _ number: UInt64,
        of node: NodeIdentity,
        client: String = "client",
        delay: Duration = .zero
    ) throws -> StoredWill {
        guard let topic = TopicName("will") else { throw ConformanceFailure(description: "no topic") }
        return StoredWill(
            id: WillID(node: node, number: number),
            key: SessionKey(owner: .anonymous, clientID: client),
            will: PendingWill(
                publication: Publication(topic: topic, payload: ByteBuffer(), kind: Publication.plainKind),
                givenAt: StoreWorld.now,
                delay: delay,
                source: .server,
                identity: ClientIdentity(clientID: client)
            ),
            delay: delay
        )
    }

    func change(_ changes: [WillChange], on node: NodeIdentity) async throws -> [Bool] {
        guard let outcomes = try await places.change(changes, on: node) else {
            throw ConformanceFailure(description: "the node was removed")
        }
        return outcomes
    }

    func inherited(of node: NodeIdentity, by heir: NodeIdentity, limit: Int = 10) async throws -> [StoredWill] {
        guard let wills = try await places.inheritWills(of: node.id, by: heir, limit: limit) else {
            throw ConformanceFailure(description: "the heir was removed")
        }
        return wills
    }

    func connections(on node: NodeIdentity) async throws -> Set<UInt64> {
        try await places.standing(of: [phone.user], on: node)?.first?.connections ?? []
    }

    /// Returns the nodes to which a message to oneself is sent.
    func nodesOfCommit(_ clientID: String) async throws -> NodeSet? {
        let user = phone.user
        let append = MessageAppend(
            id: MessageID(high: UInt64(clientID.utf8.first ?? 0), low: 0),
            draft: MessageDraft(
                conversation: .direct(between: user, and: user),
                clientID: clientID,
                content: MessageContent(bytes: [1])
            ),
            sender: world[0],
            sentAt: StoreWorld.now,
            expiresAt: StoreWorld.now.advanced(by: .seconds(60)),
            recipients: [user]
        )
        let outcomes = try world.store.commit([.append(append)], now: StoreWorld.now)
        return outcomes.first?.deliveries.first?.nodes
    }
}
