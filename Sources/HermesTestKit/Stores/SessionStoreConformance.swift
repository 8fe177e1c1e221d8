// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The cases for every ``SessionStore``.
package enum SessionStoreConformance {
    package static var cases: [ConformanceCase] {
        sessions + owners + listing + queues + exactlyOnce + moving + retaining + purging + budgets
    }

    private static let sessions = [
        ConformanceCase("A session is created once and found again, with its subscriptions") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let opened = try world.open("a", expiry: .seconds(60))
            try expect(!opened.wasPresent)
            try expect(opened.isOnline && opened.head == 0 && opened.subscriptions.isEmpty)
            let many = SubscriptionOptions(
                qos: .exactlyOnce,
                noLocal: true,
                retainAsPublished: true,
                identifiers: [1, 268_435_455],
                isLiveAtMostOnceOnly: true
            )
            let subscriptions = [
                DurableSubscription(filter: "a/+", options: many),
                DurableSubscription(filter: "$share/g/b/#", options: SubscriptionOptions()),
                DurableSubscription(filter: "c", options: SubscriptionOptions(qos: .atLeastOnce)),
            ]
            try world.change(.subscribe(opened.id, subscriptions))
            let replaced = DurableSubscription(filter: "c", options: SubscriptionOptions(qos: .exactlyOnce))
            try world.change(.subscribe(opened.id, [replaced]))
            try world.change(.unsubscribe(opened.id, ["$share/g/b/#", "never"]))
            try world.change(.close(opened.id, sentUpTo: 0, expiresAt: StoreWorld.later(.seconds(60))))
            let again = try world.open("a", expiry: nil)
            try expect(again.wasPresent)
            try expectEqual(again.id, opened.id)
            try expectEqual(Set(again.subscriptions), [subscriptions[0], replaced])
            for same in ["\u{E9}", "e\u{301}"] {
                try expect(try !world.open(same).wasPresent, "client ids are compared byte by byte")
                for filter in ["\u{E9}", "e\u{301}", "$share/\u{E9}/t", "$share/e\u{301}/t"] {
                    try world.change(
                        .subscribe(
                            try world.open(same).id,
                            [DurableSubscription(filter: filter, options: SubscriptionOptions())]
                        )
                    )
                }
                try expectEqual(try world.open(same).subscriptions.count, 4)
            }
            let stranger = try world.open("a", owner: .subject("bob"))
            try expect(!stranger.wasPresent && stranger.id > again.id, "another owner's")
        },
        ConformanceCase("All sessions are listed as they stand") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            try expect(try await world.store.sessions().isEmpty)
            let online = try world.open("online", expiry: .seconds(30))
            let offline = try world.open("offline", expiry: nil)
            let options = SubscriptionOptions(qos: .atLeastOnce)
            for id in [online.id, offline.id] {
                try world.change(.subscribe(id, [DurableSubscription(filter: "t", options: options)]))
            }
            try world.publish("x", to: [offline.id])
            try world.publish("yy", to: [offline.id])
            try world.change(.close(offline.id, sentUpTo: 1, expiresAt: StoreWorld.later(.seconds(9))))
            let all = try await world.store.sessions().sorted { $0.id < $1.id }
            try expectEqual(all.map(\.key.clientID), ["online", "offline"])
            try expectEqual(all.map(\.isOnline), [true, false])
            try expectEqual(all.map(\.expiry), [.seconds(30), nil])
            try expectEqual(all.map(\.expiresAt), [nil, StoreWorld.later(.seconds(9))])
            try expectEqual(all.map(\.head), [0, 2])
            try expectEqual(all.map(\.sentUpTo), [0, 1])
            try expectEqual(all.map(\.queuedCount), [0, 2])
            try expectEqual(all[0].queuedBytes, 0)
            try expectEqual(all[1].queuedBytes, world.publication("x").weight + world.publication("yy").weight)
            try expectEqual(all.map(\.subscriptions.count), [1, 1])
        },
        ConformanceCase("A clean start removes the session there was, whose id never comes back") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let old = try world.open("a")
            try world.change(.subscribe(old.id, [DurableSubscription(filter: "t", options: SubscriptionOptions())]))
            try world.publish("lost", to: [old.id], received: ReceivedMark(session: old.id, id: 1))
            let new = try world.open("a", clean: true)
            try expect(!new.wasPresent && new.id > old.id)
            try expect(new.head == 0 && new.received.isEmpty && new.subscriptions.isEmpty)
            try expectEqual(try world.publish("late", to: [old.id, new.id]), [0, 1])
            try expectEqual(try await world.queue(old.id), [])
            try expectEqual(try await world.queue(new.id), ["1:late"])
            for operation in [
                SessionOperation.close(old.id, sentUpTo: 1, expiresAt: nil), .completed(old.id, [1]),
                .subscribe(old.id, []), .unsubscribe(old.id, []), .released(old.id, 1), .receivedReleased(old.id, 1),
            ] {
                guard case .refused(let error) = try world.commit(operation) else {
                    throw ConformanceFailure(description: "not refused: \(operation)")
                }
                try expectEqual(error.code, .notFound)
            }
            try world.change(.remove(new.id))
            try world.change(.remove(new.id))
            try expect(try world.open("a").id > new.id)
            try expectEqual(try await world.store.sessions().count, 1)
        },
        ConformanceCase("How far was sent only grows, and never beyond the head") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            for text in ["1", "2", "3"] { try world.publish(text, to: [id]) }
            for (sent, expected) in [(UInt64(2), UInt64(2)), (1, 2), (.max, 3)] {
                try world.change(.close(id, sentUpTo: sent, expiresAt: nil))
                try expectEqual(try world.open("a").sentUpTo, expected)
            }
        },
    ]

    private static let queues = [
        ConformanceCase("Queues are contiguous from 1 and read page by page") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b", "c"].map { try world.open($0).id }
            for number in 1...50 {
                let targets = number % 5 == 0 ? ids : [ids[number % 2]]
                let seqs = try world.publish("\(number)", to: targets)
                try expect(seqs.allSatisfy { $0 > 0 })
            }
            for id in ids {
                var found: [QueuedPublication] = []
                while true {
                    let last = found.last?.seq ?? 0
                    let page = try await world.store.queued(of: id, after: last, limit: 7, maxBytes: .max)
                    if page.isEmpty { break }
                    try expect(page.count <= 7)
                    found += page
                }
                try expectEqual(found.map(\.seq), found.indices.map { UInt64($0) + 1 })
                let numbers = found.compactMap { Int(String(buffer: $0.publication.payload)) }
                try expectEqual(numbers, numbers.sorted(), "in the order of the commits")
                try expectEqual(found.count, id == ids[2] ? 10 : 30)
            }
            let page = try await world.store.queued(of: ids[0], after: 0, limit: 9, maxBytes: 1)
            try expectEqual(page.count, 1, "one at least")
            try expectEqual(try await world.store.queued(of: ids[0], after: .max, limit: 9, maxBytes: .max).count, 0)
        },
        ConformanceCase("A publication comes back as it was, for one and for many, small and large") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            let details = PublicationDetails(
                expiresAt: StoreWorld.later(.seconds(5)),
                payloadIsUTF8: true,
                contentType: "text/plain",
                responseTopic: "answer",
                correlationData: ByteBuffer(bytes: [0, 255]),
                userProperties: [("b", "2"), ("a", ""), ("b", "ü")]
            )
            let variants = [
                nil, details, PublicationDetails(), PublicationDetails(expiresAt: StoreWorld.later(.seconds(1))),
                PublicationDetails(payloadIsUTF8: true), PublicationDetails(userProperties: [("", "")]),
            ]
            var expected: [StoredPublication] = []
            for (index, size) in [0, 1, 600, 700, 5000, 100_000].enumerated() {
                for details in variants {
                    let publication = StoredPublication(
                        topic: world.topic(index % 2 == 0 ? "a/ä" : "a/b"),
                        payload: ByteBuffer(repeating: UInt8(index), count: size),
                        qos: index % 2 == 0 ? .exactlyOnce : .atLeastOnce,
                        retain: index % 3 == 0,
                        details: details,
                        publishedAt: StoreWorld.later(.seconds(index))
                    )
                    let targets = (expected.count % 2 == 0 ? ids : [ids[0]]).map { id in
                        PublicationTarget(
                            session: id,
                            qos: .atLeastOnce,
                            identifiers: id == ids[0] ? [7, 268_435_455] : [],
                            retain: id == ids[1]
                        )
                    }
                    expected.append(publication)
                    try world.publish(publication, targets)
                }
            }
            let found = try await world.store.queued(of: ids[0], after: 0, limit: 100, maxBytes: .max)
            try expectEqual(found.count, expected.count)
            for (queued, publication) in zip(found, expected) {
                try expectSame(queued.publication, publication)
                try expectEqual(queued.qos, .atLeastOnce)
                try expectEqual(queued.identifiers, [7, 268_435_455])
                try expect(!queued.retain)
            }
            let other = try await world.store.queued(of: ids[1], after: 0, limit: 100, maxBytes: .max)
            try expectEqual(other.count, (expected.count + 1) / 2)
            for (index, queued) in other.enumerated() {
                try expectSame(queued.publication, expected[index * 2])
                try expect(queued.retain && queued.identifiers.isEmpty)
            }
        },
        ConformanceCase("What is completed is gone, in any order, once or twice") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            for number in 1...10 { try world.publish("\(number)", to: number % 2 == 0 ? ids : [ids[0]]) }
            try world.change(.completed(ids[0], [3, 1, 2, 2, 7, 99, 9]))
            try expectEqual(try await world.queue(ids[0]), ["4:4", "5:5", "6:6", "8:8", "10:10"])
            try world.change(.completed(ids[0], [1, 2, 3, 4, 5, 6, 7]))
            try expectEqual(try await world.queue(ids[0]), ["8:8", "10:10"])
            try expectEqual(try await world.queue(ids[1]).count, 5, "nobody else's")
            let stored = try await world.store.sessions().first { $0.id == ids[0] }
            try expectEqual(stored?.queuedCount, 2)
            try expectEqual(stored?.queuedBytes, world.publication("8").weight + world.publication("10").weight)
            try world.change(.completed(ids[0], [8, 10]))
            try expectEqual(try world.publish("11", to: [ids[0]]), [11], "seqs are never used again")
            try expectEqual(try await world.queue(ids[0]), ["11:11"])
        },
        ConformanceCase("A full queue takes nothing more, by number and by bytes") { makeStore in
            let one = SessionWorld(try await makeStore(StoreSettings())).publication("x").weight
            let settings = StoreSettings(maxQueuedMessages: 3, maxQueuedBytes: one * 2)
            let world = SessionWorld(try await makeStore(settings))
            let ids = try ["a", "b"].map { try world.open($0).id }
            try expectEqual(try world.publish("x", to: [ids[0]]), [1])
            try expectEqual(try world.publish("y", to: ids), [2, 1])
            try expectEqual(try world.publish("z", to: ids), [0, 2])
            try expectEqual(try world.publish("z", to: ids), [0, 0])
            try world.change(.completed(ids[0], [1]))
            try expectEqual(try world.publish("z", to: ids), [3, 0])
            try expectEqual(try await world.queue(ids[0]), ["2:y", "3:z"])
            try expectEqual(try await world.queue(ids[1]), ["1:y", "2:z"])
        },
        ConformanceCase("A batch is applied in order, and a refused operation disturbs no other") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            let stranger = DurableSessionID(rawValue: 999)
            let target = PublicationTarget(session: id, qos: .atLeastOnce)
            let outcomes = try world.store.commit(
                [
                    .publish(world.publication("1"), targets: [target], received: nil, retains: false),
                    .completed(stranger, [1]),
                    .completed(id, [1]),
                    .publish(
                        world.publication("2"),
                        targets: [PublicationTarget(session: stranger, qos: .atLeastOnce), target],
                        received: ReceivedMark(session: stranger, id: 1),
                        retains: false
                    ),
                    .remove(stranger),
                ],
                now: StoreWorld.now
            )
            try expectEqual(outcomes.count, 5)
            guard case .refused = outcomes[1], case .completed(1) = outcomes[2],
                case .published(let seqs) = outcomes[3]
            else {
                throw ConformanceFailure(description: "\(outcomes)")
            }
            try expectEqual(seqs, [0, 2])
            try expectEqual(try await world.queue(id), ["2:2"])
        },
    ]

    private static let exactlyOnce = [
        ConformanceCase("A released publication loses its content and is remembered until completed") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            for text in ["1", "2", "3"] { try world.publish(text, to: ids) }
            for seq in [3, 1, 1, 77] { try world.change(.released(ids[0], UInt64(seq))) }
            try expectEqual(try await world.queue(ids[0]), ["2:2"])
            try expectEqual(try await world.queue(ids[1]).count, 3)
            try expectEqual(try world.open("a").released, [1, 3])
            try expectEqual(try world.open("a").queuedCount, 3)
            try expectEqual(try world.open("a").queuedBytes, world.publication("2").weight)
            try world.change(.completed(ids[0], [1, 2]))
            try expectEqual(try world.open("a").released, [3])
            try world.change(.completed(ids[0], [3]))
            try expectEqual(try world.open("a").released, [])
            try expectEqual(try world.open("a").queuedCount, 0)
            try expectEqual(try world.open("a").head, 3)
        },
        ConformanceCase("Who has parts of a publication is remembered until the last of them") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings(maxQueuedMessages: 2)))
            let ids = try ["a", "b", "c", "d"].map { try world.open($0).id }
            let publisher = ids[0]
            func publish(_ extent: ReceivedMark.Extent, _ targets: [PublicationTarget]) throws {
                let mark = ReceivedMark(session: publisher, id: 9, extent: extent)
                try world.publish(world.publication("x"), targets, received: mark)
            }
            func target(_ number: Int, _ share: String? = nil) -> PublicationTarget {
                PublicationTarget(session: ids[number], qos: .exactlyOnce, share: share)
            }
            try publish(.part(number: 0, content: -5), [target(0), target(1), target(2, "$share/g/t")])
            try publish(.part(number: 1, content: -5), [])
            // A full queue accepts nothing more. A member of a shared subscription with a full queue leaves the
            // publication to other members.
            for _ in 0..<2 { try world.publish("y", to: [ids[3]]) }
            try publish(.part(number: 2, content: -5), [target(3), target(3, "$share/other/t")])
            var opened = try world.open("a")
            try expectEqual(opened.received, [])
            let expected = PartialPublication(
                content: -5,
                parts: 3,
                sessions: [ids[0], ids[1], ids[3]],
                shares: [TopicText("$share/g/t")]
            )
            try expectEqual(opened.partial, [9: expected])
            try publish(.part(number: 0, content: 6), [target(1)])
            opened = try world.open("a")
            try expectEqual(opened.partial, [9: PartialPublication(content: 6, parts: 1, sessions: [ids[1]])])
            try publish(.last, [target(2)])
            opened = try world.open("a")
            try expectEqual(opened.partial, [:])
            try expectEqual(opened.received, [9])
            let nobody = DurableSessionID(rawValue: 99)
            let gone = ReceivedMark(session: nobody, id: 9, extent: .part(number: 0, content: 1))
            try world.publish(world.publication("x"), [target(2)], received: gone)
            try publish(.part(number: 0, content: 6), [target(0)])
            try world.change(.remove(publisher))
            try expectEqual(try world.open("a").partial, [:])
        },
        ConformanceCase("The rest of a publication is a part if a chosen member of a group does not take it") {
            makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings(maxQueuedMessages: 1)))
            let ids = try ["a", "b", "c"].map { try world.open($0).id }
            try world.publish("y", to: [ids[2]])
            func publish(_ members: Int...) throws {
                let extent = ReceivedMark.Extent.rest(number: 0, content: 5)
                let targets = members.map {
                    PublicationTarget(session: ids[$0], qos: .exactlyOnce, share: "$share/g\($0)/t")
                }
                let mark = ReceivedMark(session: ids[0], id: 9, extent: extent)
                try world.publish(world.publication("x", topic: "t"), targets, received: mark, retains: true)
            }
            try publish(1, 2)
            var opened = try world.open("a")
            try expectEqual(opened.received, [])
            let shares: Set<TopicText> = [TopicText("$share/g1/t")]
            try expectEqual(opened.partial, [9: PartialPublication(content: 5, parts: 1, shares: shares)])
            try expectEqual(try await world.retainedTexts(), [])
            try publish(0)
            opened = try world.open("a")
            try expectEqual(opened.received, [9])
            try expectEqual(opened.partial, [:])
            try expectEqual(try await world.retainedTexts(), ["x"])
        },
        ConformanceCase("Packet ids a session published with are kept until it releases them") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            for packetID in [65_535, 1, 7, 7] as [UInt16] {
                try world.publish("x", to: [], received: ReceivedMark(session: id, id: packetID))
            }
            try expectEqual(try world.open("a").received, [1, 7, 65_535])
            try world.change(.receivedReleased(id, 7))
            try world.change(.receivedReleased(id, 8))
            try expectEqual(try world.open("a").received, [1, 65_535])
        },
    ]

    private static let retaining = [
        ConformanceCase("The newest publication of a topic is retained until an empty one comes") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            try world.change(.retain(world.publication("old", topic: "t")))
            try world.change(.retain(world.publication("other", topic: "t/u")))
            let details = PublicationDetails(contentType: "x")
            let newest = StoredPublication(
                topic: world.topic("t"),
                payload: ByteBuffer(string: "new"),
                qos: .exactlyOnce,
                retain: true,
                details: details,
                publishedAt: StoreWorld.now
            )
            try world.publish(newest, [PublicationTarget(session: id, qos: .atLeastOnce)], retains: true)
            let found = try await world.store.retained().sorted { $0.topic.rawValue < $1.topic.rawValue }
            try expectEqual(found.map { String(buffer: $0.payload) }, ["new", "other"])
            try expectSame(found[0], newest)
            let outcomes = try world.store.commit(
                [
                    .retain(world.publication("", topic: "t")), .retain(world.publication("", topic: "never")),
                    .retain(world.publication("x", topic: "v")), .retain(world.publication("", topic: "v")),
                    .retain(world.publication("", topic: "w")), .retain(world.publication("y", topic: "w")),
                ],
                now: StoreWorld.now
            )
            try expectEqual(outcomes.count, 6)
            let left = try await world.store.retained().map(\.topic.rawValue).sorted()
            try expectEqual(left, ["t/u", "w"])
            let some = try await world.store.retained(of: ["w", "t", "t/u/v", "never"].map(world.topic))
            try expectEqual(some.map { "\($0.topic): \(String(buffer: $0.payload))" }, ["w: y"])
            try expectEqual(try await world.store.retained(of: []).count, 0)
            try expectEqual(try await world.queue(id), ["1:new"], "the queue has its own")
        },
        ConformanceCase("Pages have all retained publications, ascending by the bytes of their topics") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            // A slash sorts before letters, and letters sort before characters that are not ASCII.
            let topics = ["a", "a/b", "ab", "a\u{301}", "z", "\u{e1}"]
            for topic in topics.shuffled() { try world.change(.retain(world.publication(topic, topic: topic))) }
            for limit in 1...7 {
                var found: [String] = []
                var place: TopicName?
                repeat {
                    let page = try await world.store.retained(after: place, limit: limit)
                    try expectEqual(page.publications.count <= limit, true)
                    found += page.publications.map(\.topic.rawValue)
                    place = page.next
                } while place != nil
                try expectEqual(found.map { Array($0.utf8) }, topics.map { Array($0.utf8) })
            }
        },
    ]

    private static let purging = [
        ConformanceCase("What a session was sent does not expire any more") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
            for text in ["sent", "waiting"] {
                let target = PublicationTarget(session: id, qos: .exactlyOnce)
                try world.publish(world.publication(text, topic: "t", soon), [target])
            }
            try world.change(.close(id, sentUpTo: 1, expiresAt: nil))
            try await world.purge(at: StoreWorld.later(.seconds(2)))
            try expectEqual(try await world.queue(id), ["1:sent"])
            try world.change(.completed(id, [1]))
            try expectEqual(try await world.queue(id), [])
        },
        ConformanceCase("What an open session may have sent stays; the rest is told, and is not completed twice") {
            makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
            for number in 1...3 {
                let publication = world.publication("\(number)", topic: "t", soon)
                try world.publish(publication, ids.map { PublicationTarget(session: $0, qos: .atLeastOnce) })
            }
            let first = ids[0]
            let purge = try await world.store.purgeSessions(now: StoreWorld.later(.seconds(1)), limit: 100) { id in
                id == first ? 2 : 0
            }
            try expectEqual(purge.expired, [ids[0]: 1, ids[1]: 3])
            try expectEqual(try await world.queue(ids[0]), ["1:1", "2:2"])
            try expectEqual(try await world.queue(ids[1]), [])
            guard case .completed(2) = try world.commit(.completed(ids[0], [1, 2, 3])) else {
                throw ConformanceFailure(description: "two were there")
            }
            guard case .completed(0) = try world.commit(.completed(ids[1], [1, 2, 3])) else {
                throw ConformanceFailure(description: "none was there")
            }
            try expectEqual(try await world.store.sessions().map(\.queuedCount), [0, 0])
        },
        ConformanceCase("What has expired goes from queues and topics, a bounded amount at a time") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
            for number in 1...9 {
                let publication = world.publication("\(number)", topic: "t\(number)", number % 3 == 0 ? nil : soon)
                let targets = number % 2 == 0 ? ids : [ids[0]]
                try world.publish(publication, targets.map { PublicationTarget(session: $0, qos: .atLeastOnce) })
                try world.change(.retain(publication))
            }
            try expectEqual(try await world.store.purgeSessions(now: StoreWorld.now, limit: 100), 0)
            try expectEqual(try await world.store.purgeSessions(now: StoreWorld.later(.seconds(1)), limit: 2), 2)
            try await world.purge(at: StoreWorld.later(.seconds(1)))
            try expectEqual(try await world.queue(ids[0]), ["3:3", "6:6", "9:9"])
            try expectEqual(try await world.queue(ids[1]), ["3:6"])
            try expectEqual(try await world.store.retained().count, 3)
            let stored = try await world.store.sessions().sorted { $0.id < $1.id }
            try expectEqual(stored.map(\.queuedCount), [3, 1])
            try expectEqual(stored[0].queuedBytes, world.publication("3", topic: "t3").weight * 3)
            try expectEqual(try world.publish("next", to: ids), [10, 5])
        },
        ConformanceCase("What removed sessions had goes, what others share with them stays") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            for number in 1...25 { try world.publish("\(number)", to: number % 2 == 0 ? ids : [ids[0]]) }
            try world.change(.remove(ids[0]))
            try await world.purge(at: StoreWorld.now, limit: 7)
            try expectEqual(try await world.queue(ids[0]), [])
            try expectEqual(try await world.queue(ids[1]).count, 12)
            try expectEqual(try await world.queue(ids[1]).first, "1:2")
            try world.change(.remove(ids[1]))
            try await world.purge(at: StoreWorld.now)
            try expect(try await world.store.sessions().isEmpty)
        },
    ]
}

/// Throws unless the two publications are equal in every respect.
func expectSame(
    _ found: StoredPublication,
    _ expected: StoredPublication,
    file: StaticString = #fileID,
    line: Int = #line
) throws {
    try expectEqual(found.topic, expected.topic, file: file, line: line)
    try expectEqual(found.payload, expected.payload, file: file, line: line)
    try expectEqual(found.qos, expected.qos, file: file, line: line)
    try expectEqual(found.retain, expected.retain, file: file, line: line)
    try expectEqual(found.publishedAt, expected.publishedAt, file: file, line: line)
    try expectEqual(found.weight, expected.weight, file: file, line: line)
    try expect(found.details == expected.details, "\(found)", file: file, line: line)
}
