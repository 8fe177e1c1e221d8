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
            let kept = try await world.places.remove(one, silentSince: early, limit: 10)
            try expect(kept.changes.isEmpty && kept.isDone)
            let removed = try await world.places.remove(one, silentSince: StoreWorld.now, limit: 10)
            try expectEqual(removed.changes.map(\.isOnline), [false])
            try expect(removed.isDone)
            let again = try await world.places.remove(one, silentSince: StoreWorld.now, limit: 10)
            try expect(again.changes.isEmpty && again.isDone, "told twice")
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
            let cleared = try await world.places.remove(new, silentSince: early, limit: 1)
            try expectEqual(cleared.changes.map(\.user), [world.other.user])
            try expectEqual(try await world.connections(on: new), [1])
            try expectEqual(try await world.places.renew(new, now: StoreWorld.now)?.map(\.mustClear), [false])
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
