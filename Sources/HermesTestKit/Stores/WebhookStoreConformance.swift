// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``WebhookStore``.
package enum WebhookStoreConformance {
    package static let cases = [
        ConformanceCase("Events are due in the order in which they were appended, until they are done") { makeStore in
            let store = try await makeStore(StoreSettings())
            try expectEqual(try await store.appendWebhooks([event("a"), event("b")], marks: [:], limit: 10), 0)
            _ = try await store.appendWebhooks([event("c")], marks: [:], limit: 10)
            let due = try await store.dueWebhooks(now: StoreWorld.now, limit: 10)
            try expectEqual(due.map(\.event), [event("a"), event("b"), event("c")])
            try expectEqual(due.map(\.attempts), [0, 0, 0])
            try expectEqual(try await store.ids(limit: 2), ["a", "b"])
            try await store.settleWebhooks([.done(due[0].number), .done(due[2].number), .done(9_999)])
            try expectEqual(try await store.ids(), ["b"])
            let queue = try await store.webhookQueue()
            try expectEqual(queue.count, 1)
            try expectEqual(queue.nextDue, StoreWorld.now)
        },
        ConformanceCase("An empty queue has nothing due") { makeStore in
            let store = try await makeStore(StoreSettings())
            let queue = try await store.webhookQueue()
            try expectEqual(queue.count, 0)
            try expectEqual(queue.nextDue, nil)
            try expectEqual(try await store.ids(), [])
        },
        ConformanceCase("The oldest are dropped beyond the limit, and counted") { makeStore in
            let store = try await makeStore(StoreSettings())
            _ = try await store.appendWebhooks([event("a"), event("b")], marks: [:], limit: 3)
            try expectEqual(
                try await store.appendWebhooks([event("c"), event("d"), event("e")], marks: [:], limit: 3),
                2
            )
            try expectEqual(try await store.ids(), ["c", "d", "e"])
        },
        ConformanceCase("What failed comes again later, and its user's later events wait for it, at first") {
            makeStore in
            let store = try await makeStore(StoreSettings())
            guard let ann = UserID(rawValue: 1), let bob = UserID(rawValue: 2) else {
                throw ConformanceFailure(description: "no user id")
            }
            let events = [event("a1", ann), event("b1", bob), event("a2", ann), event("none"), event("b2", bob)]
            _ = try await store.appendWebhooks(events, marks: [:], limit: 10)
            let first = try await store.dueWebhooks(now: StoreWorld.now, limit: 1)[0].number
            let later = StoreWorld.later(.seconds(8))
            try await store.settleWebhooks([.again(first, attempts: 1, due: later)])
            try expectEqual(try await store.ids(), ["b1", "none", "b2"])
            try expectEqual(try await store.webhookQueue().nextDue, StoreWorld.now)
            try expectEqual(try await store.ids(at: later), ["a1", "b1", "a2", "none", "b2"])
            try expectEqual(try await store.dueWebhooks(now: later, limit: 1).map(\.attempts), [1])
            try await store.settleWebhooks([
                .again(first, attempts: WebhookEvent.attemptsInOrder, due: later)
            ])
            try expectEqual(try await store.ids(), ["b1", "a2", "none", "b2"])
        },
        ConformanceCase("Events of a time when the clock was ahead are due at once, and hold up no later ones") {
            makeStore in
            let store = try await makeStore(StoreSettings())
            guard let ann = UserID(rawValue: 1), let bob = UserID(rawValue: 2) else {
                throw ConformanceFailure(description: "no user id")
            }
            let ahead = StoreWorld.later(.seconds(48 * 3600))
            let early = (1...150).map { event("a\($0)", $0 == 1 ? ann : nil, at: ahead) }
            _ = try await store.appendWebhooks(early, marks: [:], limit: 1_000)
            _ = try await store.appendWebhooks([event("a", ann), event("b", bob)], marks: [:], limit: 1_000)
            try expectEqual(try await store.ids(limit: 200), early.map(\.id) + ["a", "b"])
            // An event that is to be posted again after the longest wait is not due.
            let number = try await store.dueWebhooks(now: StoreWorld.now, limit: 1)[0].number
            let longest = StoreWorld.later(WebhookEvent.maxWait)
            try await store.settleWebhooks([.again(number, attempts: 1, due: longest)])
            try expectEqual(try await store.ids(limit: 200), early.dropFirst().map(\.id) + ["b"])
            let later = longest.advanced(by: .milliseconds(1))
            try await store.settleWebhooks([.again(number, attempts: 1, due: later)])
            try expectEqual(try await store.ids(limit: 200), early.map(\.id) + ["a", "b"])
        },
        ConformanceCase("A user with many events has no more than its turn, and no more than its share waits") {
            makeStore in
            let store = try await makeStore(StoreSettings())
            guard let ann = UserID(rawValue: 1), let bob = UserID(rawValue: 2) else {
                throw ConformanceFailure(description: "no user id")
            }
            let many = (1...350).map { event("a\($0)", ann) }
            try expectEqual(try await store.appendWebhooks(many + [event("b", bob)], marks: [:], limit: 30_000), 50)
            try expectEqual(try await store.webhookQueue().count, 301)
            let turn = (51..<51 + WebhookEvent.maxDuePerUser).map { "a\($0)" }
            try expectEqual(try await store.ids(limit: 20), turn + ["b"])
            // The first of these events fails. It becomes due again long after the others have become due.
            let first = try await store.dueWebhooks(now: StoreWorld.now, limit: 1)[0].number
            let later = StoreWorld.later(.seconds(8))
            try await store.settleWebhooks([.again(first, attempts: 1, due: later)])
            try expectEqual(try await store.ids(limit: 20), ["b"])
            try expectEqual(try await store.ids(limit: 20, at: later), turn + ["b"])
        },
        ConformanceCase("Marks move forward, and tell for whom something is undelivered") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, devices: [StoreWorld.phone, StoreWorld.tablet])
            let store = world.store
            for person in 1..<3 { try world.send("hello", from: 0, to: person) }
            try expectEqual(try await store.usersWithUndelivered(after: nil, limit: 10), world.people.map(\.user))
            try expectEqual(try await store.usersWithUndelivered(after: world[1].user, limit: 1), [world[2].user])
            try world.acknowledge(0, on: [StoreWorld.tablet])
            try world.acknowledge(1)
            try expectEqual(try await store.usersWithUndelivered(after: nil, limit: 10), [world[2].user])
            try expectEqual(try await store.undeliveredMark(of: world[2].user), 0)
            _ = try await store.appendWebhooks([event("a", world[2].user)], marks: [world[2].user: 1], limit: 10)
            _ = try await store.appendWebhooks([], marks: [world[2].user: 0], limit: 10)
            try expectEqual(try await store.undeliveredMark(of: world[2].user), 1)
            try expectEqual(try await store.usersWithUndelivered(after: nil, limit: 10), [])
            try world.send("again", from: 0, to: 2)
            try expectEqual(
                try await store.usersWithUndelivered(after: nil, limit: 10),
                [world[0].user, world[2].user]
            )
        },
        ConformanceCase("An account that is gone gets no mark") { makeStore in
            let world = try await StoreWorld(makeStore)
            let user = world[1].user
            _ = try world.commit(.deleteAccount(user))
            _ = try await world.store.appendWebhooks([], marks: [user: 5], limit: 10)
            try expectEqual(try await world.store.undeliveredMark(of: user), 0)
        },
        ConformanceCase("What only a claimed device took is undelivered") { makeStore in
            let world = try await StoreWorld(makeStore, people: 2, devices: [StoreWorld.phone])
            let watch = StoreWorld.device("watch")
            for person in world.people {
                let opening = DeviceOpening(user: person.user, device: DeviceDescription(id: watch), proof: .claim)
                _ = try await world.store.open(opening, now: StoreWorld.now)
            }
            try await world.store.revoke(.device(StoreWorld.phone, of: world[1].user), now: StoreWorld.now)
            try world.send("hello", from: 0, to: 1)
            for person in 0...1 { try world.acknowledge(person, on: [watch]) }
            try expectEqual(
                try await world.store.usersWithUndelivered(after: nil, limit: 10),
                world.people.map(\.user)
            )
        },
    ]

    private static func event(
        _ id: String,
        _ user: UserID? = nil,
        at createdAt: Timestamp = StoreWorld.now
    ) -> WebhookEvent {
        WebhookEvent(id: id, user: user, createdAt: createdAt, body: Array("{\"id\":\"\(id)\"}".utf8))
    }
}

extension WebhookStore {
    fileprivate func ids(limit: Int = 10, at now: Timestamp = StoreWorld.now) async throws -> [String] {
        try await dueWebhooks(now: now, limit: limit).map(\.event.id)
    }
}
