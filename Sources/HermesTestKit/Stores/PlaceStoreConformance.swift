// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``PlaceStore``.
package enum PlaceStoreConformance {
    package static let cases = [
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
            // Too late, and not its own.
            let late = try await world.change([.release(world.phone, connection: 1)], on: one)
            try expectEqual(late.map(\.presence), [nil])
            let earlier = try await world.change([.release(world.phone, connection: 8)], on: two)
            try expectEqual(earlier.map(\.presence), [nil])
            // A later connection came and went before it could be claimed.
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
        ConformanceCase("A silent node is removed, and all of its places with it") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            _ = try await world.change([.claim(world.phone, connection: 1)], on: one)
            let later = StoreWorld.now.advanced(by: .seconds(10))
            let leases = try await world.places.renew(two, now: later)
            try expectEqual(leases?.map(\.renewedAt), [StoreWorld.now, later])
            let early = StoreWorld.now.advanced(by: .seconds(-1))
            let kept = try await world.remove(one, silentSince: early)
            try expect(kept.presence.isEmpty && kept.isDone)
            let removed = try await world.remove(one)
            try expectEqual(removed.presence.map(\.isOnline), [false])
            try expect(removed.isDone)
            let again = try await world.remove(one)
            try expect(again.presence.isEmpty && again.isDone, "told twice")
            // It wakes up.
            try expectEqual(try await world.places.renew(one, now: later), nil)
            let claim = PlaceChange.claim(world.phone, connection: 2)
            try expectEqual(try await world.places.change([claim], on: one), nil)
            try expectEqual(try await world.places.renew(two, now: later)?.map(\.isIn), [false, true])
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
            try expectEqual(try await world.places.renew(old, now: StoreWorld.now), nil)
            _ = try await world.change([.claim(world.phone, connection: 1)], on: new)
            try expectEqual(try await world.places.renew(new, now: StoreWorld.now)?.map(\.mustClear), [true])
            let early = StoreWorld.now.advanced(by: .seconds(-1))
            let cleared = try await world.remove(new, silentSince: early, limit: 1)
            try expectEqual(cleared.presence.map(\.user), [world.other.user])
            try expectEqual(try await world.connections(on: new), [1])
            try expectEqual(try await world.places.renew(new, now: StoreWorld.now)?.map(\.mustClear), [false])
        },
        ConformanceCase("A kept session has one place: the node that opened it last") { makeStore in
            let world = try await PlaceWorld(makeStore)
            let (one, two) = (try await world.join(1), try await world.join(2))
            let first = try world.opened(on: one)
            try expectEqual(first.place, SessionPlace(node: one, opening: 1, since: StoreWorld.now))
            let second = try world.opened(on: two)
            try expectEqual(second.place, SessionPlace(node: two, opening: 2, since: StoreWorld.now))
            // What the first one still does comes too late.
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
}

/// A store with places, two accounts and their devices.
private struct PlaceWorld {
    let places: any PlaceStore
    let world: StoreWorld
    let phone: DeviceKey
    let tablet: DeviceKey
    /// Another account's.
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
        return try await places.join(id, now: StoreWorld.now)
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
        silentSince: Timestamp = StoreWorld.now,
        limit: Int = 10
    ) async throws -> NodeRemoval {
        try await places.remove(node, silentSince: silentSince, now: StoreWorld.now, limit: limit)
    }

    func commit(_ operation: SessionOperation) throws -> SessionOutcome {
        guard let sessions = places as? any SessionStore else {
            throw ConformanceFailure(description: "the store has no sessions")
        }
        return try sessions.commit([operation], now: StoreWorld.now)[0]
    }

    func opened(_ name: String = "client", expiry: Duration? = nil, on node: NodeIdentity) throws -> StoredSession {
        let key = SessionKey(owner: .anonymous, clientID: name)
        guard case .opened(let session) = try commit(.open(key, clean: false, expiry: expiry, on: node)) else {
            throw ConformanceFailure(description: "not opened")
        }
        return session
    }

    func connections(on node: NodeIdentity) async throws -> Set<UInt64> {
        try await places.standing(of: [phone.user], on: node)?.first?.connections ?? []
    }

    /// The nodes to which a message to oneself goes.
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
