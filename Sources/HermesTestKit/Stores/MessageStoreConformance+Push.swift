// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension MessageStoreConformance {
    static let pushes = [
        ConformanceCase("A push is an entry of each recipient's inbox, with the seq of that") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            try world.send("a", from: 0, to: 1)
            let push = world.push("sale", collapseKey: "k", device: StoreWorld.tablet, priority: .high)
            let outcome = try world.push(.append(push, recipients: [world[0].user, world[1].user], claim: nil))
            try expectEqual(outcome.deliveries.map(\.user), [world[0].user, world[1].user])
            try expectEqual(outcome.deliveries.map(\.entry.seq), [2, 2])
            try expectEqual(try await world.inbox(2), [])
            let page = try await world.store.entries(of: world[1].user, after: 1, limit: 10)
            try expectEqual(page.entries, [outcome.deliveries[1].entry])
            try expectEqual(page.entries.first?.event, .push(push))
        },
        ConformanceCase("Those who have no account are left out") { makeStore in
            let world = try await StoreWorld(makeStore)
            guard let stranger = UserID(rawValue: 77) else {
                throw ConformanceFailure(description: "no user id")
            }
            let push = world.push("sale")
            let outcome = try world.push(.append(push, recipients: [stranger, world[1].user], claim: nil))
            try expectEqual(outcome.deliveries.map(\.user), [world[1].user])
        },
        ConformanceCase("A push goes with its own time to live") { makeStore in
            let world = try await StoreWorld(makeStore)
            let push = world.push("sale", lifetime: .seconds(10))
            _ = try world.push(.append(push, recipients: [world[1].user], claim: nil))
            try await world.purge(at: StoreWorld.later(.seconds(9)))
            try expectEqual(try await world.inbox(1), ["1:push sale"])
            try await world.purge(at: StoreWorld.later(.seconds(10)))
            try expectEqual(try await world.inbox(1), ["1-1:hole"])
        },
        ConformanceCase("A newer push takes the place of one with its collapse key, of the same user and device") {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let both = [world[0].user, world[1].user]
            func send(_ title: String, _ key: String, to users: [UserID], _ device: DeviceID? = nil) throws {
                let push = world.push(title, collapseKey: key, device: device)
                _ = try world.push(.append(push, recipients: users, claim: nil))
            }
            try send("1", "score", to: both)
            try send("2", "other", to: [both[1]])
            try send("3", "score", to: [both[1]])
            try send("4", "score", to: [both[1]], StoreWorld.phone)
            try send("5", "score", to: [both[1]])
            try expectEqual(try await world.inbox(0), ["1:push 1"])
            try expectEqual(
                try await world.inbox(1),
                ["1-1:hole", "2:push 2", "3-3:hole", "4:push 4", "5:push 5"]
            )
            // The entries between the holes are purged like other entries.
            try world.acknowledge(1, upTo: 4)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-4:hole", "5:push 5"])
        },
        ConformanceCase("The same claim gets the first answer, another content is a conflict") { makeStore in
            let world = try await StoreWorld(makeStore)
            func send(_ claim: PushClaim, at now: Timestamp = StoreWorld.now) throws -> PushOutcome {
                try world.push(.append(world.push("x"), recipients: [world[1].user], claim: claim), at: now)
            }
            let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            try expectEqual(try send(claim).firstAnswer, nil)
            let again = try send(PushClaim(owner: "a", key: "k", contentHash: [1], answer: [8]))
            try expectEqual(again.firstAnswer, [9])
            try expectEqual(again.deliveries.count, 0)
            let other = PushClaim(owner: "a", key: "k", contentHash: [2], answer: [7])
            try expectEqual(try world.refusal(.push(.claim(other))), .clientIDConflict)
            try expectEqual(try send(PushClaim(owner: "b", key: "k", contentHash: [2], answer: [7])).firstAnswer, nil)
            try expectEqual(try await world.inbox(1), ["1:push x", "2:push x"])
            // Once a claim's time is over, its key is free, whether the claim has been purged or not.
            try expectEqual(try send(other, at: StoreWorld.later(PushClaim.period)).firstAnswer, nil)
            try await world.purge(at: StoreWorld.later(PushClaim.period))
            let free = PushClaim(owner: "b", key: "k", contentHash: [5], answer: [])
            try expectEqual(try send(free, at: StoreWorld.later(PushClaim.period)).firstAnswer, nil)
            try expectEqual(
                try world.refusal(.push(.claim(claim)), at: StoreWorld.later(PushClaim.period)),
                .clientIDConflict
            )
        },
        ConformanceCase("A claim alone is open until it is settled; then it gets the first answer") { makeStore in
            let world = try await StoreWorld(makeStore)
            let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            let again = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [8])
            let other = PushClaim(owner: "a", key: "k", contentHash: [2], answer: [7])
            let first = try world.push(.claim(claim))
            try expect(first.firstAnswer == nil && first.openAnswer == nil)
            for _ in 1...2 {
                let open = try world.push(.claim(again))
                try expect(open.firstAnswer == nil)
                try expectEqual(open.openAnswer, [9], "an attempt whose end nobody knows")
            }
            try expectEqual(try world.refusal(.push(.claim(other))), .clientIDConflict)
            _ = try world.push(.settle(other))
            try expectEqual(try world.push(.claim(again)).openAnswer, [9], "nobody else settles it")
            _ = try world.push(.settle(claim))
            let done = try world.push(.claim(again))
            try expectEqual(done.firstAnswer, [9])
            try expect(done.openAnswer == nil)
            let late = try world.push(.claim(other), at: StoreWorld.later(PushClaim.period))
            try expect(late.firstAnswer == nil && late.openAnswer == nil, "its time is over")
            try expectEqual(try world.push(.claim(other), at: StoreWorld.later(PushClaim.period)).openAnswer, [7])
        },
        ConformanceCase("Looking for a claim's answer takes nothing") { makeStore in
            let world = try await StoreWorld(makeStore)
            let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            let other = PushClaim(owner: "a", key: "k", contentHash: [2], answer: [7])
            func found(_ claim: PushClaim, at now: Timestamp = StoreWorld.now) throws -> [UInt8]? {
                let outcome = try world.push(.find(claim), at: now)
                return outcome.firstAnswer
            }
            try expectEqual(try found(claim), nil)
            let claimed = try world.push(.claim(claim))
            try expect(claimed.openAnswer == nil, "it is not taken")
            try expectEqual(try found(claim), nil, "its completion is unknown")
            _ = try world.push(.settle(claim))
            try expectEqual(try found(claim), [9])
            try expectEqual(try world.refusal(.push(.find(other))), .clientIDConflict)
            try expectEqual(try found(other, at: StoreWorld.later(PushClaim.period)), nil)
        },
        ConformanceCase("A push for many reaches each once, in steps") { makeStore in
            let world = try await StoreWorld(makeStore, people: 7)
            let push = world.push("news")
            let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            let users = [6, 1, 2, 3, 5].map { world[$0].user }
            let job = PushJob(push: push, target: .users(users))
            _ = try world.push(.accept(job, claim: claim))
            try expectEqual(try world.push(.accept(job, claim: claim)).firstAnswer, [9])
            try expectEqual(try await world.store.pushJobs(), [push.id])
            var reached: [[UserID]] = []
            while true {
                let outcome = try world.push(.fanOut(push.id, limit: 2))
                reached.append(outcome.deliveries.map(\.user))
                if outcome.isDone { break }
            }
            try expectEqual(reached, [Array(users[0...1]), Array(users[2...3]), [users[4]]])
            try expectEqual(try await world.store.pushJobs(), [])
            try expectEqual(try world.push(.fanOut(push.id, limit: 2)).deliveries.count, 0)
            for person in 0...6 {
                try expectEqual(try await world.inbox(person).count, [0, 4].contains(person) ? 0 : 1)
            }
        },
        ConformanceCase("A push for everyone reaches the accounts of that moment, but for disabled ones") { makeStore in
            let world = try await StoreWorld(makeStore, people: 5)
            _ = try await world.store.update(world[1].user, AccountChange(isDisabled: true))
            let push = world.push("news")
            _ = try world.push(.accept(PushJob(push: push, target: .everyone), claim: nil))
            _ = try await world.store.create(
                NewAccount(nickName: StoreWorld.name("Late"), password: PasswordHash(phc: "")),
                now: StoreWorld.now
            )
            var reached: [UserID] = []
            while true {
                let outcome = try world.push(.fanOut(push.id, limit: 2))
                reached += outcome.deliveries.map(\.user)
                if outcome.isDone { break }
            }
            try expectEqual(reached, [0, 2, 3, 4].map { world[$0].user })
            try expectEqual(try await world.store.pushJobs(), [])
        },
        ConformanceCase("A push for many that has expired reaches nobody more") { makeStore in
            let world = try await StoreWorld(makeStore)
            let push = world.push("news", lifetime: .seconds(5))
            _ = try world.push(.accept(PushJob(push: push, target: .everyone), claim: nil))
            _ = try world.push(.fanOut(push.id, limit: 1))
            let late = try world.push(.fanOut(push.id, limit: 1), at: StoreWorld.later(.seconds(5)))
            try expect(late.isDone && late.deliveries.isEmpty)
            try expectEqual(try await world.store.pushJobs(), [])
            try expectEqual(try await world.inbox(1), [])
        },
        ConformanceCase("While the clock may be wrong, a push for many of an earlier process is held back") {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let push = world.push("news", lifetime: .seconds(5))
            _ = try world.push(.accept(PushJob(push: push, target: .everyone), claim: nil))
            let start = StoreWorld.later(.seconds(3_600))
            let step = PushOperation.fanOut(push.id, limit: FanOutLimit(9, storedSince: start))
            for _ in 1...2 {
                let early = try world.push(step, at: start)
                try expect(early.isHeldBack && !early.isDone && early.deliveries.isEmpty)
                try expectEqual(try await world.store.pushJobs(), [push.id])
            }
            let done = try world.push(step, at: StoreWorld.later(.seconds(4)))
            try expect(done.isDone && !done.isHeldBack)
            try expectEqual(done.deliveries.map(\.user), world.people.map(\.user))
            let own = world.push("own", lifetime: .seconds(5))
            _ = try world.push(.accept(PushJob(push: own, target: .everyone), claim: nil))
            let limit = FanOutLimit(9, storedSince: StoreWorld.now)
            let late = try world.push(.fanOut(own.id, limit: limit), at: StoreWorld.later(.seconds(5)))
            try expect(late.isDone && late.deliveries.isEmpty, "a push of this process ends in time")
            try expectEqual(try await world.store.pushJobs(), [])
        },
        ConformanceCase("While the clock may be wrong, a claim of an earlier process does not expire") { makeStore in
            let world = try await StoreWorld(makeStore)
            let recipients = [world[1].user]
            var claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            _ = try world.push(.append(world.push("x"), recipients: recipients, claim: claim))
            let start = StoreWorld.later(.seconds(25 * 3_600))
            claim.storedSince = start
            let again = PushOperation.append(world.push("y"), recipients: recipients, claim: claim)
            for operation in [again, .claim(claim), .find(claim)] {
                try expectEqual(try world.push(operation, at: start).firstAnswer, [9])
            }
            claim.storedSince = nil
            try expectEqual(try world.push(.find(claim), at: start).firstAnswer, nil)
            try expectEqual(try await world.inbox(1), ["1:push x"])
        },
    ]
}

extension StoreWorld {
    /// Returns a push that is ready to be committed.
    package func push(
        _ title: String,
        collapseKey: String = "",
        device: DeviceID? = nil,
        priority: Push.Priority = .normal,
        lifetime: Duration = .seconds(3600)
    ) -> Push {
        Push(
            id: Self.nextID(),
            content: PushContent(
                title: title,
                body: "body",
                dataJSON: "{\"a\":1}",
                collapseKey: collapseKey,
                message: TypedMessage(type: "shop.Order", bytes: [0, 0xFF, 7])
            ),
            priority: priority,
            expiresAt: Self.later(lifetime),
            device: device
        )
    }

    /// Commits an operation on pushes. Throws if it is refused.
    package func push(_ operation: PushOperation, at now: Timestamp = now) throws -> PushOutcome {
        guard case .pushed(let outcome) = try commit(.push(operation), at: now) else {
            throw ConformanceFailure(description: "not pushed")
        }
        return outcome
    }
}
