// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``PushTokenStore``.
package enum PushTokenStoreConformance {
    package static let cases = [
        ConformanceCase("A token is the device's until another one takes its place or it is taken away") { makeStore in
            let world = try await StoreWorld(makeStore, devices: [StoreWorld.phone, StoreWorld.tablet])
            try await world.set("a", of: 0)
            try await world.set("b", .webPush, of: 0, on: StoreWorld.tablet)
            let targets = try await world.store.pushTargets(of: world[0].user)
            try expectEqual(targets.map(\.device), [StoreWorld.phone, StoreWorld.tablet])
            try expectEqual(targets.map(\.token), [token("a"), token("b", .webPush)])
            try expectEqual(targets.map(\.setAt), [StoreWorld.now, StoreWorld.now])
            try await world.set("c", of: 0)
            try expectEqual(try await world.tokens(of: 0), ["c", "b"])
            try await world.store.setPushToken(
                nil,
                of: StoreWorld.phone,
                world[0].user,
                shown: .other,
                now: StoreWorld.now
            )
            try expectEqual(try await world.tokens(of: 0), ["b"])
            try expectEqual(try await world.tokens(of: 1), [])
        },
        ConformanceCase("The devices of one user that have a token are found, disabled or not") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, devices: [StoreWorld.phone, StoreWorld.tablet])
            let users = world.people.map(\.user)
            for (person, device) in [(0, StoreWorld.phone), (1, StoreWorld.phone), (1, StoreWorld.tablet)] {
                try await world.set("\(person) \(device.rawValue)", .webPush, of: person, on: device)
            }
            func found() async throws -> [Set<DeviceID>] {
                var found: [Set<DeviceID>] = []
                for user in users { found.append(try await world.store.devicesWithPushTokens(of: user)) }
                return found
            }
            try expectEqual(try await found(), [[StoreWorld.phone], [StoreWorld.phone, StoreWorld.tablet], []])
            _ = try await world.store.update(users[1], AccountChange(isDisabled: true))
            try await world.store.setPushToken(
                nil,
                of: StoreWorld.phone,
                users[1],
                shown: .other,
                now: StoreWorld.now
            )
            try expectEqual(try await found(), [[StoreWorld.phone], [StoreWorld.tablet], []])
        },
        ConformanceCase("A device that does not exist has no token") { makeStore in
            let world = try await StoreWorld(makeStore)
            let store = world.store
            try await expectError(.notFound) {
                try await store.setPushToken(
                    token("a"),
                    of: StoreWorld.tablet,
                    world[0].user,
                    shown: .other,
                    now: StoreWorld.now
                )
            }
            try expectEqual(try await store.devicesWithPushTokens(after: nil, limit: 10), [])
        },
        ConformanceCase("A token is of one device: whoever had it before loses it") { makeStore in
            let world = try await StoreWorld(makeStore)
            try await world.set("a", of: 0)
            try await world.set("a", of: 1)
            try expectEqual(try await world.tokens(of: 0), [])
            try expectEqual(try await world.tokens(of: 1), ["a"])
            try await world.set("a", .fcm, of: 0)
            try expectEqual(try await world.tokens(of: 1), ["a"], "of another service it is another one")
        },
        ConformanceCase("A token in another spelling, or with another app id, is the same token") { makeStore in
            let world = try await StoreWorld(makeStore)
            for (one, other) in spellings {
                for (first, second) in [(one, other), (other, one)] {
                    try await world.set(first, of: 0)
                    try await world.set(second, of: 1)
                    try expectEqual(try await world.tokens(of: 0), [], first.text)
                    try expectEqual(try await world.store.pushTargets(of: world[1].user).map(\.token), [second])
                }
            }
            for (one, other) in different {
                try await world.set(one, of: 0)
                try await world.set(other, of: 1)
                try expectEqual(try await world.tokens(of: 0), [one.text])
            }
        },
        ConformanceCase("A device that sets its token in another spelling gets what it would have got") { makeStore in
            let world = try await StoreWorld(makeStore)
            let user = world[1].user
            var head: UInt64 = 0
            for (one, other) in spellings {
                try await world.set(one, of: 1)
                try world.send("after", from: 0, to: 1)
                try await world.set(other, of: 1)
                let targets = try await world.store.pushTargets(of: user)
                try expectEqual(targets.map(\.token), [other])
                try expectEqual(targets.map(\.pushedUpTo), [head])
                try expectEqual(try await world.store.usersToPush(after: nil, limit: 10), [user])
                head += 1
            }
        },
        ConformanceCase("What was there before the token is not pushed; the same token again changes nothing") {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let user = world[1].user
            try world.send("before", from: 0, to: 1)
            try await world.set("a", of: 1)
            try expectEqual(try await world.store.pushTargets(of: user).map(\.pushedUpTo), [1])
            try expectEqual(try await world.store.usersToPush(after: nil, limit: 10), [])
            try world.send("after", from: 0, to: 1)
            try expectEqual(try await world.store.usersToPush(after: nil, limit: 10), [user])
            try await world.set("a", of: 1, at: StoreWorld.later(.seconds(5)))
            let again = try await world.store.pushTargets(of: user)
            try expectEqual(again.map(\.pushedUpTo), [1])
            try expectEqual(again.map(\.setAt), [StoreWorld.later(.seconds(5))])
            try await world.set("b", of: 1)
            try expectEqual(try await world.store.pushTargets(of: user).map(\.pushedUpTo), [2])
        },
        ConformanceCase("Neither what was acknowledged nor what was pushed is to be pushed") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            for person in 0..<3 { try await world.set("token\(person)", of: person) }
            for person in 1..<3 { try world.send("hello", from: 0, to: person) }
            let store = world.store
            try expectEqual(try await store.usersToPush(after: nil, limit: 10), world.people.map(\.user))
            try expectEqual(try await store.usersToPush(after: world[0].user, limit: 1), [world[1].user])
            let owners = world.people.map { TokenOwner(user: $0.user, device: StoreWorld.phone) }
            try expectEqual(try await store.devicesWithPushTokens(after: nil, limit: 2), Array(owners.prefix(2)))
            try expectEqual(try await store.devicesWithPushTokens(after: owners[1], limit: 2), [owners[2]])
            try world.acknowledge(0)
            try world.acknowledge(1)
            try await store.settlePushes([
                .pushed(world[2].user, StoreWorld.phone, token("token2"), upTo: 1),
                .pushed(world[2].user, StoreWorld.phone, token("token2"), upTo: 0),
                .pushed(world[2].user, StoreWorld.tablet, token("token2"), upTo: 1),
                // The token was replaced during the push.
                .pushed(world[1].user, StoreWorld.phone, token("earlier"), upTo: 1),
            ])
            try expectEqual(try await store.pushTargets(of: world[1].user).map(\.pushedUpTo), [0])
            try expectEqual(try await store.usersToPush(after: nil, limit: 10), [])
            try expectEqual(try await store.pushTargets(of: world[2].user).map(\.pushedUpTo), [1])
            try expectEqual(try await store.pushTargets(of: world[1].user).map(\.cursor), [1])
        },
        ConformanceCase("A token that is gone is forgotten, unless there is a newer one") { makeStore in
            let world = try await StoreWorld(makeStore)
            let store = world.store
            let user = world[0].user
            try await world.set("a", of: 0)
            try await store.settlePushes([
                .gone(user, StoreWorld.phone, token("b"), since: nil),
                .gone(user, StoreWorld.phone, token("a"), since: StoreWorld.now.advanced(by: .milliseconds(-1))),
            ])
            try expectEqual(try await world.tokens(of: 0), ["a"])
            try await store.settlePushes([.gone(user, StoreWorld.phone, token("a"), since: StoreWorld.now)])
            try expectEqual(try await world.tokens(of: 0), [])
            try await world.set("a", of: 0)
            try await store.settlePushes([.gone(user, StoreWorld.phone, token("a"), since: nil)])
            try expectEqual(try await world.tokens(of: 0), [])
        },
        ConformanceCase("Nobody pushes to a disabled account, until it is enabled again") { makeStore in
            let world = try await StoreWorld(makeStore)
            let store = world.store
            let user = world[1].user
            try await world.set("a", of: 1)
            try world.send("hello", from: 0, to: 1)
            _ = try await store.update(user, AccountChange(isDisabled: true))
            try expectEqual(try await world.tokens(of: 1), [])
            try expectEqual(try await store.usersToPush(after: nil, limit: 10), [])
            _ = try await store.update(user, AccountChange(isDisabled: false))
            try expectEqual(try await world.tokens(of: 1), ["a"])
            try expectEqual(try await store.usersToPush(after: nil, limit: 10), [user])
        },
        ConformanceCase("Whoever is logged out is not pushed to any more") { makeStore in
            let world = try await StoreWorld(makeStore, devices: [StoreWorld.phone, StoreWorld.tablet])
            let store = world.store
            let user = world[0].user
            let hash = TokenHash(bytes: Array(repeating: 1, count: 32))
            let description = DeviceDescription(id: StoreWorld.tablet)
            func setBoth() async throws {
                _ = try await store.open(description, of: user, token: hash, now: StoreWorld.now)
                try await world.set("a", of: 0)
                try await world.set("b", of: 0, on: StoreWorld.tablet)
            }
            try await world.set("other", of: 1)
            try await setBoth()
            try await store.revoke(.token(hash), now: StoreWorld.now)
            try expectEqual(try await world.tokens(of: 0), ["a"])
            try await setBoth()
            try await store.revoke(.allTokens(of: user, except: hash), now: StoreWorld.now)
            try expectEqual(try await world.tokens(of: 0), ["b"])
            try await setBoth()
            try await store.revoke(.allTokens(of: user, except: nil), now: StoreWorld.now)
            try expectEqual(try await world.tokens(of: 0), [])
            try await setBoth()
            try await store.revoke(.device(StoreWorld.phone, of: user), now: StoreWorld.now)
            try expectEqual(try await world.tokens(of: 0), ["b"])
            try expectEqual(try await world.tokens(of: 1), ["other"])
        },
        ConformanceCase("A login that was revoked meanwhile stores no token, but may take one away") { makeStore in
            let world = try await StoreWorld(makeStore)
            let (store, user) = (world.store, world[0].user)
            let hash = TokenHash(bytes: Array(repeating: 1, count: 32))
            let strangers = TokenHash(bytes: Array(repeating: 2, count: 32))
            let phone = DeviceDescription(id: StoreWorld.phone)
            _ = try await store.open(phone, of: user, token: hash, now: StoreWorld.now)
            _ = try await store.open(phone, of: world[1].user, token: strangers, now: StoreWorld.now)
            let before = PasswordHash(phc: "$none$")
            for shown in [ShownProof.token(hash), .password(before)] { try await world.set("a", of: 0, shown: shown) }
            var change = AccountChange(password: PasswordHash(phc: "$new$"))
            change.revokes = .allTokens(of: user, except: nil)
            _ = try await store.update(user, change)
            let refusals: [(ShownProof, HermesError.Code)] = [
                (.token(hash), .invalidToken), (.token(strangers), .invalidToken),
                (.password(before), .wrongCredentials),
            ]
            for (shown, code) in refusals {
                try await expectError(code) { try await world.set("b", of: 0, shown: shown) }
                try expectEqual(try await world.tokens(of: 0), [])
                let device = DeviceDescription(id: StoreWorld.tablet)
                let opening = DeviceOpening(user: user, device: device, shown: shown)
                try await expectError(code) { _ = try await store.open(opening, now: StoreWorld.now) }
                try expectEqual(try await store.devices(of: user).map(\.description.id), [StoreWorld.phone])
            }
            try await world.set("c", of: 0, shown: .password(PasswordHash(phc: "$new$")))
            try expectEqual(try await world.tokens(of: 0), ["c"])
            let phoneID = StoreWorld.phone
            try await store.setPushToken(nil, of: phoneID, user, shown: .token(hash), now: StoreWorld.now)
            try expectEqual(try await world.tokens(of: 0), [])
        },
    ]

    /// Pairs of spellings of one token. Each pair is for a different token.
    private static let spellings: [(PushToken, PushToken)] = [
        (token("a:b", .fcm), PushToken(stored: .fcm, text: "a:b", appID: "")),
        (token("00ff"), PushToken(stored: .apns, text: "00ff", appID: "")), (token("0aff"), token("0aFF")),
        (token("00ff", .apnsSandbox), token("00FF", .apnsSandbox)),
        (subscription("https://push.example.org/a"), subscription("https://PUSH.example.org:443/a", isLong: true)),
    ]

    /// Pairs of tokens that only look alike.
    private static let different: [(PushToken, PushToken)] = [
        (token("a:b", .fcm), token("A:b", .fcm)), (token("00ff"), token("00fe")),
        (token("00ff"), token("00ff", .apnsSandbox)),
        (subscription("https://push.example.org/a"), subscription("https://push.example.org/A")),
        (subscription("https://push.example.org/a"), subscription("https://push.example.org:444/a")),
        (subscription("https://push.example.org/a?b"), subscription("https://push.example.org/a?c")),
    ]

    /// Returns a token for Web Push.
    ///
    /// - Parameter isLong: whether the subscription is written with needless characters and members, in another order.
    private static func subscription(_ endpoint: String, isLong: Bool = false) -> PushToken {
        // 65 bytes, of which the first one is 4, and 16 bytes.
        let (key, secret) = ("B" + String(repeating: "A", count: 86), String(repeating: "A", count: 22))
        guard isLong else {
            return token(
                #"{"endpoint":"\#(endpoint)","keys":{"p256dh":"\#(key)","auth":"\#(secret)"}}"#,
                .webPush
            )
        }
        let keys = #"{"auth": "\#(secret)==", "p256dh": "\#(key)"}"#
        return token(#"{ "expirationTime": null, "keys": \#(keys), "endpoint": "\#(endpoint)" }"#, .webPush)
    }

    fileprivate static func token(_ text: String, _ service: PushToken.Service = .apns) -> PushToken {
        PushToken(stored: service, text: text, appID: "org.example")
    }
}

extension StoreWorld {
    fileprivate func set(
        _ text: String,
        _ service: PushToken.Service = .apns,
        of person: Int,
        on device: DeviceID = phone,
        shown: ShownProof = .other,
        at now: Timestamp = now
    ) async throws {
        let token = PushTokenStoreConformance.token(text, service)
        try await store.setPushToken(token, of: device, people[person].user, shown: shown, now: now)
    }

    fileprivate func set(_ token: PushToken, of person: Int) async throws {
        try await store.setPushToken(token, of: Self.phone, people[person].user, shown: .other, now: Self.now)
    }

    fileprivate func tokens(of person: Int) async throws -> [String] {
        try await store.pushTargets(of: people[person].user).map(\.token.text)
    }
}
