// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension MessageStoreConformance {
    static let cursors = [
        ConformanceCase("A cursor moves forward only, and not beyond the head") { makeStore in
            let world = try await StoreWorld(makeStore)
            for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
            let user = world[1].user
            for (seq, expected) in [(0, 0), (2, 2), (1, 2), (2, 2), (UInt64.max, 3), (0, 3)] as [(UInt64, UInt64)] {
                guard case .acknowledged(let cursor) = try world.commit(.acknowledge(user, StoreWorld.phone, upTo: seq))
                else { throw ConformanceFailure(description: "not acknowledged") }
                try expectEqual(cursor, expected)
                try expectEqual(try await world.store.devices(of: user).map(\.cursor), [expected])
            }
            try expectEqual(try world.refusal(.acknowledge(user, StoreWorld.tablet, upTo: 1)), .notFound)
        },
        ConformanceCase("An acknowledgement sees what was appended before it in the same batch") { makeStore in
            let world = try await StoreWorld(makeStore)
            let outcomes = try world.store.commit(
                [
                    .append(world.message("a", from: 0, to: 1)),
                    .acknowledge(world[1].user, StoreWorld.phone, upTo: 9),
                    .append(world.message("b", from: 0, to: 1)),
                ],
                now: StoreWorld.now
            )
            guard case .acknowledged(1) = outcomes[1] else { throw ConformanceFailure(description: "\(outcomes)") }
        },
        ConformanceCase("A new device starts before the oldest stored entry") { makeStore in
            let world = try await StoreWorld(makeStore)
            for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
            try world.acknowledge(1, upTo: 2)
            try await world.purge()
            let description = DeviceDescription(id: StoreWorld.tablet)
            let user = world[1].user
            let device = try await world.store.open(description, of: user, token: nil, now: StoreWorld.now)
            try expectEqual(device.cursor, 2)
            try world.acknowledge(1)
            try await world.purge()
            try expectEqual(try await world.inbox(1, after: device.cursor), ["3:c"], "the new device has not had it")
            try world.acknowledge(1, on: [StoreWorld.tablet])
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-3:hole"])
        },
    ]

    static let purging = [
        ConformanceCase("What a clock stored that was behind keeps its time; what was older does not") { makeStore in
            let world = try await StoreWorld(makeStore)
            let (hour, year) = (Duration.seconds(3_600), Duration.seconds(366 * 86_400))
            let right = StoreWorld.now
            let behind = right.advanced(by: .zero - year)
            func send(_ text: String, at time: Timestamp, lifetime: Duration, clientID: String? = nil) throws {
                let message = world.message(text, from: 0, to: 1, clientID: clientID, at: time, lifetime: lifetime)
                guard case .appended = try world.store.commit([.append(message)], now: time).first else {
                    throw ConformanceFailure(description: "not appended")
                }
            }
            // Two messages were stored a year ago, when the clock was right. One of them has expired by now.
            let before = behind.advanced(by: .zero - hour)
            try send("over", at: before, lifetime: hour / 2)
            try send("long", at: before, lifetime: .seconds(400 * 86_400))
            try send("right", at: right.advanced(by: .zero - hour), lifetime: hour * 2)
            try send("behind", at: behind, lifetime: hour)
            let mark = WriteOperation.markRead(world.conversation(0, 1), by: world[1].user, upTo: 1)
            guard case .eventAppended = try world.store.commit([mark], now: behind).first else {
                throw ConformanceFailure(description: "not marked")
            }
            let end = behind.advanced(by: .seconds(600))
            try await world.store.record(ClockJump(since: behind, end: end, length: year))
            let now = right.advanced(by: .seconds(600))
            let page = try await world.store.entries(of: world[1].user, after: 0, limit: 9)
                .withoutExpired(at: ExpiryTime(now: now))
            try expectEqual(
                page.entries.map { StoreWorld.summary($0) },
                ["1-1:hole", "2:long", "3:right", "4:behind", "5:read 1"]
            )
            try await world.purge(at: now)
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:long", "3:right", "4:behind", "5:read 1"])
            // The times are corrected only once, although the store is purged again.
            try await world.purge(at: right.advanced(by: hour).advanced(by: .milliseconds(-1)))
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:long", "3:right", "4:behind", "5:read 1"])
            try await world.purge(at: right.advanced(by: hour))
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:long", "3-4:hole", "5:read 1"])
            try await world.purge(at: right.advanced(by: .seconds(30 * 86_400 + 1)))
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:long", "3-5:hole"])
            try await world.purge(at: right.advanced(by: .seconds(34 * 86_400)))
            try expectEqual(try await world.inbox(1), ["1-5:hole"])
        },
        ConformanceCase(
            "A jump of the clock that was wrong is taken back, and nothing that was stored meanwhile lives on"
        ) {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let (hour, year) = (Duration.seconds(3_600), Duration.seconds(366 * 86_400))
            let right = StoreWorld.now
            func send(_ text: String, at time: Timestamp) throws {
                let message = world.message(text, from: 0, to: 1, clientID: nil, at: time, lifetime: hour * 10)
                guard case .appended = try world.store.commit([.append(message)], now: time).first else {
                    throw ConformanceFailure(description: "not appended")
                }
            }
            try send("early", at: right)
            let end = right.advanced(by: .seconds(600))
            try await world.store.record(ClockJump(since: right, end: end, length: year))
            let ahead = end.advanced(by: year)
            // Store more rows than one transaction moves.
            for number in 1...300 { try send("while \(number)", at: ahead) }
            let mark = WriteOperation.markRead(world.conversation(0, 1), by: world[1].user, upTo: 1)
            guard case .eventAppended = try world.store.commit([mark], now: ahead).first else {
                throw ConformanceFailure(description: "not marked")
            }
            // The message "early" would look expired, but its time is moved along with the jump.
            try await world.purge(at: ahead.advanced(by: hour))
            try expectEqual(try await world.inbox(1).count, 302)
            // The clock is right again, and stays so for ten minutes.
            let back = right.advanced(by: hour)
            try send("new", at: back)
            let now = back.advanced(by: .seconds(600))
            // A setback whose length differs from the length of the jump changes nothing.
            try await world.store.takeBack(ClockSetback(length: hour, since: back, now: now))
            try await world.purge(at: right.advanced(by: hour * 12))
            try expectEqual(try await world.inbox(1).suffix(2), ["302:read 1", "303-303:hole"], "the new one is over")
            // Each row is moved only once.
            for _ in 0..<2 { try await world.store.takeBack(ClockSetback(length: year, since: back, now: now)) }
            try await world.purge(at: right.advanced(by: hour * 10).advanced(by: .milliseconds(-1)))
            try expectEqual(try await world.inbox(1).count, 303)
            try await world.purge(at: right.advanced(by: hour * 10))
            try expectEqual(try await world.inbox(1).prefix(2), ["1-1:hole", "2:while 1"])
            try await world.purge(at: end.advanced(by: hour * 10))
            try expectEqual(try await world.inbox(1), ["1-301:hole", "302:read 1", "303-303:hole"])
            try await world.purge(at: end.advanced(by: .seconds(30 * 86_400 + 1)))
            try expectEqual(try await world.inbox(1), ["1-303:hole"])
        },
        ConformanceCase("A repetition is recognised for a day, though the clock was behind") { makeStore in
            for isPurgedBefore in [false, true] {
                let world = try await StoreWorld(makeStore)
                let year = Duration.seconds(366 * 86_400)
                let behind = StoreWorld.now.advanced(by: .zero - year)
                let message = world.message("text", from: 0, to: 1, clientID: "c", at: behind)
                _ = try world.store.commit([.append(message)], now: behind)
                for person in 0...1 { try world.acknowledge(person) }
                if isPurgedBefore { try await world.purge(at: behind) }
                try await world.store.record(ClockJump(since: behind, end: behind, length: year))
                for seconds in [60, 3_600, 86_399] {
                    try await world.purge(at: StoreWorld.later(.seconds(seconds)))
                    let again = world.message("text", from: 0, to: 1, clientID: "c")
                    guard case .duplicate = try world.commit(.append(again)) else {
                        throw ConformanceFailure(description: "not a duplicate after \(seconds) s")
                    }
                }
                try await world.purge(at: StoreWorld.later(.seconds(86_401)))
                let again = world.message("text", from: 0, to: 1, clientID: "c")
                guard case .appended = try world.commit(.append(again)) else {
                    throw ConformanceFailure(description: "still known")
                }
            }
        },
        ConformanceCase("An entry goes once every device has acknowledged it") { makeStore in
            let devices = [StoreWorld.phone, StoreWorld.tablet]
            let world = try await StoreWorld(makeStore, devices: devices)
            for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
            try world.acknowledge(1, upTo: 2)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1:a", "2:b", "3:c"], "the tablet has none")
            try world.acknowledge(1, upTo: 1, on: [StoreWorld.tablet])
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:b", "3:c"])
            try expectEqual(try await world.inbox(0), ["1:a", "2:b", "3:c"], "another inbox")
            let position = try await world.store.position(of: world[1].user)
            try expectEqual([position.oldest, position.head], [2, 3])
            try world.acknowledge(1, on: devices)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-3:hole"])
            try expectEqual(try await world.store.position(of: world[1].user).oldest, 4)
            try world.send("d", from: 0, to: 1)
            try expectEqual(try await world.inbox(1), ["1-3:hole", "4:d"])
            try expectEqual(try await world.store.position(of: world[1].user).oldest, 4)
        },
        ConformanceCase("A device that is removed no longer keeps entries") { makeStore in
            let devices = [StoreWorld.phone, StoreWorld.tablet]
            let world = try await StoreWorld(makeStore, devices: devices)
            try world.send("a", from: 0, to: 1)
            try world.acknowledge(1)
            try await world.store.revoke(.device(StoreWorld.tablet, of: world[1].user), now: StoreWorld.now)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-1:hole"])
        },
        ConformanceCase("An account without devices keeps its entries until they expire") { makeStore in
            let world = try await StoreWorld(makeStore, devices: [])
            try world.send("a", from: 0, to: 1, lifetime: .seconds(60))
            try await world.purge(at: StoreWorld.later(.seconds(59)))
            try expectEqual(try await world.inbox(1), ["1:a"])
            try await world.purge(at: StoreWorld.later(.seconds(60)))
            try expectEqual(try await world.inbox(1), ["1-1:hole"])
            try expectEqual(try await world.inbox(0), ["1-1:hole"])
            try expectEqual(try world.send("b", from: 0, to: 1).inboxSeq, 2)
        },
        ConformanceCase("What expires leaves holes that pages name, wherever they are") { makeStore in
            let world = try await StoreWorld(makeStore)
            for (index, text) in ["a", "b", "c", "d", "e", "f", "g"].enumerated() {
                let isShort = [0, 2, 3, 6].contains(index)
                try world.send(text, from: 0, to: 1, lifetime: .seconds(isShort ? 60 : 600))
            }
            try await world.purge(at: StoreWorld.later(.seconds(100)))
            let all = ["1-1:hole", "2:b", "3-4:hole", "5:e", "6:f", "7-7:hole"]
            try expectEqual(try await world.inbox(1), all)
            try expectEqual(try await world.inbox(1, after: 3), ["4-4:hole", "5:e", "6:f", "7-7:hole"])
            try expectEqual(try await world.inbox(1, limit: 1), ["1-1:hole"])
            try expectEqual(try await world.inbox(1, limit: 3), ["1-1:hole", "2:b", "3-4:hole"])
            try expectEqual(try await world.inbox(1, after: 4, limit: 2), ["5:e", "6:f"])
            try expectEqual(try await world.inbox(1, after: 6), ["7-7:hole"])
            let position = try await world.store.position(of: world[1].user)
            try expectEqual([position.oldest, position.head], [2, 7])
        },
        ConformanceCase("Events go when they are acknowledged, or expire on their own") { makeStore in
            let settings = StoreSettings(eventPeriod: .seconds(60))
            let world = try await StoreWorld(makeStore, settings: settings)
            try world.send("a", from: 0, to: 1)
            for person in [0, 1] { try world.acknowledge(person) }
            _ = try world.commit(.markRead(world.conversation(0, 1), by: world[1].user, upTo: 1))
            try world.acknowledge(0)
            try await world.purge()
            try expectEqual(try await world.inbox(0), ["1-2:hole"])
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:read 1"])
            try await world.purge(at: StoreWorld.later(.seconds(60)))
            try expectEqual(try await world.inbox(1), ["1-2:hole"])
        },
        ConformanceCase("A purge does a bounded amount, and comes to an end") { makeStore in
            let world = try await StoreWorld(makeStore)
            for index in 0..<50 { try world.send("\(index)", from: 0, to: 1, lifetime: .seconds(60)) }
            try world.acknowledge(1)
            var calls = 0
            while true {
                let before = try await world.inbox(1).count + world.inbox(0).count
                let done = try await world.store.purge(now: StoreWorld.later(.seconds(100)), limit: 10)
                if done == 0 { break }
                let after = try await world.inbox(1).count + world.inbox(0).count
                try expect(before - after <= 11, "at most 10 entries, and a hole that takes their place")
                calls += 1
                try expect(calls < 100)
            }
            try expect(calls >= 10)
            try expectEqual(try await world.inbox(0), ["1-50:hole"])
            try expectEqual(try await world.inbox(1), ["1-50:hole"])
        },
    ]
}
