// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for logins and registrations of every ``AccountStore``.
enum LoginConformance {
    static let cases = devices + traces + invitations

    private static func create(
        _ name: String,
        in store: any Store,
        invitation: TokenHash? = nil
    ) async throws -> Account {
        let new = NewAccount(
            nickName: StoreWorld.name(name),
            password: PasswordHash(phc: "$\(name)$"),
            invitation: invitation
        )
        return try await store.create(new, now: StoreWorld.now)
    }

    private static func token(_ number: UInt8) -> TokenHash { TokenHash(bytes: Array(repeating: number, count: 32)) }

    private static let devices = [
        ConformanceCase("A device beyond the limit is refused, a known one is not") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            func open(_ id: DeviceID) async throws {
                let opening = DeviceOpening(
                    user: ann,
                    device: DeviceDescription(id: id),
                    token: token(UInt8(id.rawValue.utf8.count)),
                    maxDevices: 1
                )
                _ = try await store.open(opening, now: StoreWorld.now)
            }
            try await open(StoreWorld.phone)
            try await expectError(.deviceLimitReached) { try await open(StoreWorld.tablet) }
            try await open(StoreWorld.phone)
            try expectEqual(try await store.devices(of: ann).map(\.description.id), [StoreWorld.phone])
            let refused = token(UInt8(StoreWorld.tablet.rawValue.utf8.count))
            try expect(try await store.owner(of: refused) == nil, "a refused login leaves no token")
        },
        ConformanceCase("A device belongs to the strongest proof it showed") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            func open(_ proof: DeviceProof) async throws -> DeviceProof {
                let opening = DeviceOpening(user: ann, device: DeviceDescription(id: StoreWorld.phone), proof: proof)
                let device = try await store.open(opening, now: StoreWorld.now)
                return device.proof
            }
            try expectEqual(try await open(.claim), .claim)
            try expectEqual(try await open(.voucher), .voucher)
            try await expectError(.forbidden) { try await open(.claim) }
            try expectEqual(try await open(.account), .account)
            try await expectError(.forbidden) { try await open(.voucher) }
            try expectEqual(try await store.devices(of: ann).map(\.proof), [.account])
        },
        ConformanceCase("Devices are opened in the commits of others") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            try world.acknowledge(1)
            let user = world[1].user
            let laptop = DeviceDescription(id: StoreWorld.device("laptop"), name: "Laptop")
            let openings = [
                DeviceOpening(user: user, device: laptop, token: token(7)),
                DeviceOpening(user: user, device: DeviceDescription(id: StoreWorld.phone, name: "New")),
                DeviceOpening(user: user, device: DeviceDescription(id: StoreWorld.device("watch")), maxDevices: 1),
            ]
            let outcomes = try world.store.commit(openings.map(WriteOperation.openDevice), now: StoreWorld.now)
            guard case .deviceOpened(let first) = outcomes[0], case .deviceOpened(let second) = outcomes[1],
                case .refused(let refusal) = outcomes[2]
            else { throw ConformanceFailure(description: "\(outcomes)") }
            try expectEqual(first.cursor, 0, "what is stored waits for the new device, too")
            try expectEqual(second.cursor, 1)
            try expectEqual(second.description.name, "New")
            try expectEqual(refusal.code, .deviceLimitReached)
            try expectEqual(try await world.store.owner(of: token(7))?.device, StoreWorld.device("laptop"))
            // The message is not purged before the new device has it.
            try await world.purge()
            try expectEqual(try await world.inbox(1).count, 1)
            _ = try world.store.commit([.acknowledge(user, StoreWorld.device("laptop"), upTo: 1)], now: StoreWorld.now)
            for device in try await world.store.devices(of: user) { try expectEqual(device.cursor, 1) }
        },
    ]

    private static let traces = [
        ConformanceCase("A login is known by its account or its token, in one look") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store)
            let phone = DeviceDescription(id: StoreWorld.phone, name: "Phone")
            let opened = try await store.open(phone, of: ann.id, token: token(1), now: StoreWorld.now)
            for key in [LoginKey.account(.id(ann.id)), .account(.nickName(StoreWorld.name("ANN"))), .token(token(1))] {
                let standing = try await store.standing(key, device: StoreWorld.phone, address: "1.2.3.4")
                try expectEqual(standing?.stored.account, ann)
                try expectEqual(standing?.stored.password, PasswordHash(phc: "$Ann$"))
                try expectEqual(standing?.device, opened)
                try expectEqual(standing?.networkSeenAt, nil)
                try expectEqual(standing?.position, try await store.position(of: ann.id))
                let other = try await store.standing(key, device: StoreWorld.tablet, address: nil)
                try expect(other != nil && other?.device == nil)
            }
            let ofToken = try await store.standing(.token(token(1)), device: nil, address: nil)
            try expectEqual(ofToken?.device, opened, "the device that the token was given to")
            try expectEqual(ofToken?.owner, TokenOwner(user: ann.id, device: StoreWorld.phone))
            try expect(try await store.standing(.account(.id(ann.id)), device: nil, address: nil)?.device == nil)
            try expect(try await store.standing(.token(token(2)), device: nil, address: nil) == nil)
            let bob = LoginKey.account(.nickName(StoreWorld.name("Bob")))
            try expect(try await store.standing(bob, device: nil, address: nil) == nil)
        },
        ConformanceCase("What logins leave behind is noted") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            _ = try await store.open(DeviceDescription(id: StoreWorld.phone), of: ann, token: nil, now: StoreWorld.now)
            let renamed = DeviceDescription(id: StoreWorld.phone, name: "New", platform: "p", appVersion: "2")
            let gone = DeviceDescription(id: StoreWorld.tablet)
            guard let nobody = UserID(rawValue: 99) else {
                throw ConformanceFailure(description: "no user id")
            }
            try await store.note([
                .device(renamed, of: ann, at: StoreWorld.later(.seconds(9))),
                .device(gone, of: ann, at: StoreWorld.later(.seconds(9))),
                .device(gone, of: nobody, at: StoreWorld.later(.seconds(9))),
                .network(NetworkMark(of: ann, at: "1.2.3.4"), of: ann, at: StoreWorld.later(.seconds(5))),
                .network(NetworkMark(of: ann, at: nil), of: ann, at: StoreWorld.later(.seconds(6))),
                .network(NetworkMark(of: nobody, at: nil), of: nobody, at: StoreWorld.later(.seconds(6))),
            ])
            let devices = try await store.devices(of: ann)
            try expectEqual(devices.map(\.description), [renamed])
            try expectEqual(devices.map(\.lastSeenAt), [StoreWorld.later(.seconds(9))])
            func seenAt(_ address: String?) async throws -> Timestamp? {
                let standing = try await store.standing(.account(.id(ann)), device: nil, address: address)
                return standing?.networkSeenAt
            }
            try expectEqual(try await seenAt("1.2.3.4"), StoreWorld.later(.seconds(5)))
            try expectEqual(try await seenAt(nil), StoreWorld.later(.seconds(6)))
            try expectEqual(try await seenAt("1.2.3.5"), nil)
        },
        ConformanceCase("Only the newest networks of an account are remembered, and not for ever") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            func note(_ number: Int, at time: Timestamp) async throws {
                try await store.note([.network(NetworkMark(of: ann, at: "10.0.0.\(number)"), of: ann, at: time)])
            }
            func isKnown(_ number: Int) async throws -> Bool {
                let standing = try await store.standing(.account(.id(ann)), device: nil, address: "10.0.0.\(number)")
                return standing?.networkSeenAt != nil
            }
            let most = StoreSettings.maxNetworksPerAccount
            for number in 0...most { try await note(number, at: StoreWorld.later(.seconds(number))) }
            try expect(try await !isKnown(0))
            for number in 1...most { try expect(try await isKnown(number)) }
            let later = StoreWorld.later(StoreSettings.networkPeriod + .seconds(most))
            try await note(200, at: later)
            try expect(try await isKnown(200))
            try expect(try await isKnown(most))
            try expect(try await !isKnown(most - 1))
        },
        ConformanceCase("A password is changed only if it is what was expected") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            var change = AccountChange(password: PasswordHash(phc: "$new$"))
            change.expectedPassword = PasswordHash(phc: "$other$")
            change.revokes = .allTokens(of: ann, except: nil)
            let opening = DeviceOpening(
                user: ann,
                device: DeviceDescription(id: StoreWorld.phone),
                token: token(1),
                shown: .password(PasswordHash(phc: "$Ann$"))
            )
            _ = try await store.open(opening, now: StoreWorld.now)
            let refused = change
            try await expectError(.wrongCredentials) { _ = try await store.update(ann, refused) }
            try expectEqual(try await store.find(.id(ann))?.password, PasswordHash(phc: "$Ann$"))
            try expectEqual(try await store.owner(of: token(1))?.user, ann, "what is refused revokes nothing")
            change.expectedPassword = PasswordHash(phc: "$Ann$")
            _ = try await store.update(ann, change)
            try expectEqual(try await store.find(.id(ann))?.password, PasswordHash(phc: "$new$"))
            try expectEqual(try await store.owner(of: token(1)), nil)
        },
        ConformanceCase("A token is given only for the password that the account has") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try await create("Ann", in: store).id
            func opening(_ password: String?) -> DeviceOpening {
                DeviceOpening(
                    user: ann,
                    device: DeviceDescription(id: StoreWorld.phone),
                    token: token(1),
                    shown: password.map { .password(PasswordHash(phc: $0)) } ?? .other
                )
            }
            try await expectError(.wrongCredentials) { _ = try await store.open(opening("$old$"), now: StoreWorld.now) }
            try expectEqual(try await store.owner(of: token(1)), nil)
            try expect(try await store.devices(of: ann).isEmpty)
            _ = try await store.open(opening("$Ann$"), now: StoreWorld.now)
            try expectEqual(try await store.owner(of: token(1))?.user, ann)
        },
    ]

    private static let invitations = [
        ConformanceCase("An invitation is used up with the accounts that are made") { makeStore in
            let store = try await makeStore(StoreSettings())
            let new = NewInvitation(name: "two", hash: token(1), uses: 2, expiresAt: nil)
            let invitation = try await store.create(new, now: StoreWorld.now)
            try expectEqual(try await store.invitation(token(1)), invitation)
            try expectEqual(try await store.invitations(), [invitation])
            try await expectError(.nameTaken) { try await store.create(new, now: StoreWorld.now) }
            _ = try await create("Ann", in: store, invitation: token(1))
            try await expectError(.nameTaken) { try await create("Ann", in: store, invitation: token(1)) }
            try expectEqual(try await store.invitation(token(1))?.used, 1, "no account, no use")
            _ = try await create("Bob", in: store, invitation: token(1))
            try await expectError(.invitationRequired) { try await create("Carl", in: store, invitation: token(1)) }
            try await expectError(.invitationRequired) { try await create("Carl", in: store, invitation: token(2)) }
            try expect(try await store.find(.nickName(StoreWorld.name("Carl"))) == nil)
            try await expectError(.notFound) { try await store.revoke(invitationNamed: "two\0x") }
            try expect(try await store.invitation(token(1)) != nil)
            try await store.revoke(invitationNamed: "two")
            try expect(try await store.invitation(token(1)) == nil)
            try await expectError(.notFound) { try await store.revoke(invitationNamed: "two") }
        },
        ConformanceCase("An invitation ends") { makeStore in
            let store = try await makeStore(StoreSettings())
            let new = NewInvitation(name: "past", hash: token(1), uses: 9, expiresAt: StoreWorld.now)
            _ = try await store.create(new, now: StoreWorld.now)
            try await expectError(.invitationRequired) { try await create("Ann", in: store, invitation: token(1)) }
        },
    ]
}
