// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``AccountStore``.
package enum AccountStoreConformance {
    package static var cases: [ConformanceCase] {
        accounts + devicesAndTokens + LoginConformance.cases + AccountDeletionConformance.cases
    }

    private static func create(_ name: String, in store: any Store) async throws -> Account {
        try await store.create(
            NewAccount(nickName: StoreWorld.name(name), password: PasswordHash(phc: "$\(name)$")),
            now: StoreWorld.now
        )
    }

    private static func token(_ number: UInt8) -> TokenHash { TokenHash(bytes: Array(repeating: number, count: 32)) }

    private static let accounts = [
        ConformanceCase("Accounts get ascending ids from 1 and are found by id and by name") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store)
            let bob = try await create("Bob", in: store)
            try expectEqual([ann.id.rawValue, bob.id.rawValue], [1, 2])
            try expectEqual(ann.nickName.rawValue, "Ann")
            try expectEqual(ann.createdAt, StoreWorld.now)
            try expect(!ann.isDisabled && ann.avatarURL.isEmpty)
            for key in [AccountKey.id(ann.id), .nickName(StoreWorld.name("ANN"))] {
                let found = try await store.find(key)
                try expectEqual(found?.account, ann)
                try expectEqual(found?.password, PasswordHash(phc: "$Ann$"))
            }
            try expect(try await store.find(.nickName(StoreWorld.name("Carl"))) == nil)
            guard let stranger = UserID(rawValue: 3) else {
                throw ConformanceFailure(description: "no user id")
            }
            try expect(try await store.find(.id(stranger)) == nil)
        },
        ConformanceCase("A name that differs only in case is taken, also when renaming") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store)
            let bob = try await create("Bob", in: store)
            try await expectError(.nameTaken) { try await create("aNN", in: store) }
            try await expectError(.nameTaken) {
                try await store.update(bob.id, AccountChange(nickName: StoreWorld.name("ann"), avatarURL: "lost"))
            }
            try expectEqual(try await store.find(.id(bob.id))?.account, bob, "nothing of it was changed")
            let renamed = try await store.update(ann.id, AccountChange(nickName: StoreWorld.name("ANN")))
            try expectEqual(renamed.nickName.rawValue, "ANN", "one's own name in another case")
            _ = try await store.update(ann.id, AccountChange(nickName: StoreWorld.name("Anna")))
            let kept = KeptName(key: "ann", user: ann.id)
            try expectEqual(try await store.keptNames(), [kept])
            try await expectError(.nameTaken) { try await create("Ann", in: store) }
            try await expectError(.nameTaken) {
                try await store.update(bob.id, AccountChange(nickName: StoreWorld.name("ann")))
            }
            try await store.free(KeptName(key: "ann", user: bob.id))
            try expectEqual(try await store.keptNames(), [kept], "it was another's")
            try await store.free(kept)
            try expectEqual(try await store.keptNames(), [])
            let carl = try await create("Ann", in: store)
            try expect(carl.id > bob.id, "the name is free again, the id is new")
        },
        ConformanceCase("Only what is named is changed") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store)
            let disabled = try await store.update(ann.id, AccountChange(isDisabled: true))
            try expect(disabled.isDisabled)
            let pictured = try await store.update(ann.id, AccountChange(avatarURL: "https://example.org/a.png"))
            try expect(pictured.isDisabled)
            try expectEqual(pictured.avatarURL, "https://example.org/a.png")
            let new = PasswordHash(phc: "$new$")
            _ = try await store.update(ann.id, AccountChange(password: new, isDisabled: false))
            let found = try await store.find(.id(ann.id))
            try expectEqual(found?.password, new)
            try expectEqual(found?.account.avatarURL, "https://example.org/a.png")
            try expectEqual(found?.account.isDisabled, false)
            try expectEqual(found?.account.nickName.rawValue, "Ann")
            guard let stranger = UserID(rawValue: 3) else {
                throw ConformanceFailure(description: "no user id")
            }
            try await expectError(.notFound) { try await store.update(stranger, AccountChange(isDisabled: true)) }
        },
        ConformanceCase("Accounts are listed ascending, page by page") { makeStore in
            let store = try await makeStore(StoreSettings())
            for index in 1...7 { _ = try await create("name\(index)", in: store) }
            var found: [Int32] = []
            while true {
                let last = found.last.flatMap { UserID(rawValue: $0) }
                let page = try await store.accounts(after: last, limit: 3)
                if page.isEmpty { break }
                try expect(page.count <= 3)
                found += page.map(\.id.rawValue)
            }
            try expectEqual(found, Array(1...7))
            try expectEqual(try await store.accounts(after: nil, limit: 0), [])
            try expectEqual(try await store.accounts(after: nil, limit: -1), [])
        },
        ConformanceCase("Accounts are found by a part of their names, byte by byte") { makeStore in
            let store = try await makeStore(StoreSettings())
            let names = ["ann", "joanna", "caf\u{E9}", "cafe\u{301}s", "a/\u{301}b"]
            var ids: [UserID] = []
            for name in names { ids.append(try await create(name, in: store).id) }
            func found(_ text: String) async throws -> [UserID] {
                try await store.accounts(after: nil, named: text, limit: 9).found.map(\.id)
            }
            try expectEqual(try await found("ann"), [ids[0], ids[1]])
            try expectEqual(try await found("\u{E9}"), [ids[2]])
            try expectEqual(try await found("cafe"), [ids[3]], "a combining mark follows")
            try expectEqual(try await found("e\u{301}"), [ids[3]])
            try expectEqual(try await found("a/"), [ids[4]])
            for text in ["\0", "ann\0", "\0ann"] { try expectEqual(try await found(text), [], "U+0000") }
        },
    ]

    private static let devicesAndTokens = [
        ConformanceCase("Devices of all accounts are found by a part of their ids or names") { makeStore in
            let store = try await makeStore(StoreSettings())
            let accounts = [try await create("Ann", in: store), try await create("Bob", in: store)]
            for (number, id) in ["Phone-A", "tablet", "phone-b"].enumerated() {
                guard let id = DeviceID(id) else { continue }
                let device = DeviceDescription(id: id, name: number == 1 ? "Kitchen PHONE ä" : "")
                let at = StoreWorld.later(.seconds(number))
                _ = try await store.open(device, of: accounts[number % 2].id, token: nil, now: at)
            }
            func found(_ text: String, _ limit: Int = 9) async throws -> [String] {
                try await store.devices(containing: text, limit: limit)
                    .map { "\($0.owner) \($0.description.id.rawValue)" }.sorted()
            }
            let (ann, bob) = (accounts[0].id, accounts[1].id)
            try expectEqual(try await found("phone"), ["\(ann) Phone-A", "\(ann) phone-b", "\(bob) tablet"])
            try expectEqual(try await found("phone-"), ["\(ann) Phone-A", "\(ann) phone-b"])
            try expectEqual(try await found("ä"), ["\(bob) tablet"])
            try expectEqual(try await found("a\u{308}"), [], "other bytes")
            try expectEqual(try await found("phone\0"), [])
            try expectEqual(try await found("%"), [], "no pattern")
            try expectEqual(try await found("phone", 2).count, 2)
            try await store.revoke(.device(DeviceID("tablet") ?? StoreWorld.phone, of: bob), now: StoreWorld.now)
            try expectEqual(try await found("kitchen"), [])
        },
        ConformanceCase("A device is registered once and renewed after that") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store)
            var phone = DeviceDescription(id: StoreWorld.phone, name: "Phone", platform: "iOS", appVersion: "1")
            let tablet = DeviceDescription(id: StoreWorld.tablet)
            let first = try await store.open(phone, of: ann.id, token: nil, now: StoreWorld.now)
            try expectEqual(first.cursor, 0)
            try expectEqual(first.description, phone)
            _ = try await store.open(tablet, of: ann.id, token: nil, now: StoreWorld.later(.seconds(1)))
            phone.appVersion = "2"
            let again = try await store.open(phone, of: ann.id, token: nil, now: StoreWorld.later(.seconds(2)))
            try expectEqual(again.createdAt, StoreWorld.now)
            try expectEqual(again.lastSeenAt, StoreWorld.later(.seconds(2)))
            let devices = try await store.devices(of: ann.id)
            try expectEqual(devices.map(\.description), [phone, tablet], "oldest first")
            guard let stranger = UserID(rawValue: 3) else {
                throw ConformanceFailure(description: "no user id")
            }
            try expectEqual(try await store.devices(of: stranger), [])
            try await expectError(.notFound) {
                try await store.open(phone, of: stranger, token: nil, now: StoreWorld.now)
            }
        },
        ConformanceCase("Opening a device again keeps its cursor") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            try world.acknowledge(1)
            let phone = DeviceDescription(id: StoreWorld.phone)
            let device = try await world.store.open(phone, of: world[1].user, token: nil, now: StoreWorld.now)
            try expectEqual(device.cursor, 1)
        },
        ConformanceCase("Tokens belong to a device until they are revoked") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            let bob = try await create("Bob", in: store).id
            func open(_ user: UserID, _ device: DeviceID, _ number: UInt8) async throws {
                _ = try await store.open(
                    DeviceDescription(id: device),
                    of: user,
                    token: token(number),
                    now: StoreWorld.now
                )
            }
            func known() async throws -> [UInt8] {
                var known: [UInt8] = []
                for number in UInt8(1)...9 where try await store.owner(of: token(number)) != nil {
                    known.append(number)
                }
                return known
            }
            try await open(ann, StoreWorld.phone, 1)
            try await open(ann, StoreWorld.phone, 2)
            try await open(ann, StoreWorld.tablet, 3)
            try await open(ann, StoreWorld.tablet, 4)
            try await open(bob, StoreWorld.phone, 5)
            try expectEqual(try await store.owner(of: token(3)), TokenOwner(user: ann, device: StoreWorld.tablet))
            try expectEqual(try await known(), [1, 2, 3, 4, 5])
            try await store.revoke(.token(token(1)), now: StoreWorld.now)
            try expectEqual(try await known(), [2, 3, 4, 5])
            try await store.revoke(.token(token(9)), now: StoreWorld.now)
            try await store.revoke(.device(StoreWorld.tablet, of: ann), now: StoreWorld.now)
            try expectEqual(try await known(), [2, 5])
            try expectEqual(try await store.devices(of: ann).map(\.description.id), [StoreWorld.phone])
            try await open(ann, StoreWorld.phone, 6)
            try await store.revoke(.allTokens(of: ann, except: token(6)), now: StoreWorld.now)
            try expectEqual(try await known(), [5, 6])
            try await store.revoke(.allTokens(of: ann, except: nil), now: StoreWorld.now)
            try expectEqual(try await known(), [5])
            try expectEqual(try await store.devices(of: ann).count, 1, "the device itself stays")
            try await open(bob, StoreWorld.phone, 5)
            try expectEqual(try await known(), [5])
        },
        ConformanceCase("A device keeps its newest tokens only, and nobody else's go") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            func open(_ number: UInt8, _ device: DeviceID = StoreWorld.phone) async throws {
                _ = try await store.open(
                    DeviceDescription(id: device),
                    of: ann,
                    token: token(number),
                    now: StoreWorld.later(.seconds(Int(number)))
                )
            }
            try await open(90, StoreWorld.tablet)
            for number in UInt8(1)...5 { try await open(number) }
            try expect(try await store.owner(of: token(1)) != nil, "as many as are kept")
            for number in UInt8(6)...12 { try await open(number) }
            var known: [UInt8] = []
            for number in UInt8(1)...12 where try await store.owner(of: token(number)) != nil { known.append(number) }
            try expectEqual(known, [8, 9, 10, 11, 12])
            try expect(try await store.owner(of: token(90)) != nil, "another device's")
            let listed = try await store.tokens(of: ann)
            try expectEqual(listed.map(\.device), [StoreWorld.tablet] + Array(repeating: StoreWorld.phone, count: 5))
            try expectEqual(listed.last, DeviceToken(device: StoreWorld.phone, issuedAt: StoreWorld.later(.seconds(8))))
            try await store.revoke(.device(StoreWorld.phone, of: ann), now: StoreWorld.later(.seconds(91)))
            try expectEqual(try await store.tokens(of: ann).map(\.device), [StoreWorld.tablet])
        },
        ConformanceCase("A device that was removed and comes back is new") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            try world.acknowledge(1)
            let user = world[1].user
            try await world.store.revoke(.device(StoreWorld.phone, of: user), now: StoreWorld.now)
            try expectEqual(try world.refusal(.acknowledge(user, StoreWorld.phone, upTo: 1)), .notFound)
            let device = try await world.store.open(
                DeviceDescription(id: StoreWorld.phone),
                of: user,
                token: nil,
                now: StoreWorld.now
            )
            try expectEqual(device.cursor, 0, "the entry was not purged yet")
            try world.acknowledge(1)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-1:hole"])
        },
    ]
}
