// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// A store that can call a function once: after it has read a user's devices with tokens, and before the reader gets
/// them. It can also fail once, when it reads a page of the devices of all users.
private final class InterruptedStore: PushTokenStore {
    private struct State {
        var interruption: (@Sendable () async -> Void)?
        var pagesUntilFailure = 0
    }

    private let store: MemoryStore
    private let state = Mutex(State())

    init(_ store: MemoryStore) { self.store = store }

    func afterReading(_ body: @escaping @Sendable () async -> Void) { state.withLock { $0.interruption = body } }

    /// Lets the read of the page with this number fail. The first page from now on has the number 1.
    func failPage(_ number: Int) { state.withLock { $0.pagesUntilFailure = number } }

    func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) async throws(HermesError) -> [TokenOwner] {
        let fails = state.withLock { state in
            state.pagesUntilFailure -= 1
            return state.pagesUntilFailure == 0
        }
        if fails { throw HermesError(.storageUnavailable, "the disk failed") }
        return try await store.devicesWithPushTokens(after: owner, limit: limit)
    }

    func devicesWithPushTokens(of user: UserID) async throws(HermesError) -> Set<DeviceID> {
        let found = try await store.devicesWithPushTokens(of: user)
        let interruption = state.withLock { state in
            defer { state.interruption = nil }
            return state.interruption
        }
        await interruption?()
        return found
    }

    func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        shown: ShownProof,
        now: Timestamp
    ) async throws(HermesError) {
        try await store.setPushToken(token, of: device, user, shown: shown, now: now)
    }

    func pushTargets(of user: UserID) async throws(HermesError) -> [PushTarget] {
        try await store.pushTargets(of: user)
    }

    func settlePushes(_ settlements: [PushSettlement]) async throws(HermesError) {
        try await store.settlePushes(settlements)
    }

    func usersToPush(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
        try await store.usersToPush(after: user, limit: limit)
    }
}

/// Devices whose tokens are gone.
extension PushHandOffTests {
    @Test func `a device whose token is gone is looked for once`() async throws {
        let world = try await World()
        let tokens = world.messenger.pushTokens
        try await world.send("one")
        world.sender.answer(.tokenGone(since: nil))
        await world.wait(.zero)
        #expect(try await world.store.pushTargets(of: user(2)).isEmpty)
        try await world.send("two")
        await world.wait(.zero)
        #expect(try tokens.devices(of: [user(2)]).isEmpty)
        try await world.setToken(text: "bb")
        #expect(try tokens.devices(of: [user(2)]) == [user(2): [device("phone")]])
        await world.messenger.shutdown()
    }

    @Test func `a token that is set while the devices are read stays`() async throws {
        let memory = MemoryStore()
        try await addAccounts(3, to: memory)
        let store = InterruptedStore(memory)
        let tokens = PushTokenService(store: store, time: ManualTime(), roster: nil, maxDevices: 50)
        let person = try principal(2)
        for number in Int32(1)...3 {
            let token = PushToken(stored: .apns, text: "a\(number)", appID: "")
            try await tokens.set(token, of: principal(number))
        }
        let everybody = try [user(1), user(2), user(3)]
        func removeToken() async throws {
            let now = Timestamp(rawValue: 0)
            try await memory.setPushToken(nil, of: person.device, person.user, shown: person.shown, now: now)
        }
        try await removeToken()
        store.afterReading {
            try? await tokens.set(PushToken(stored: .apns, text: "bb", appID: ""), of: person)
        }
        try await tokens.forgetGone(of: person.user)
        #expect(tokens.devices(of: everybody).count == 3)
        try await removeToken()
        try await tokens.forgetGone(of: person.user)
        #expect(try Set(tokens.devices(of: everybody).keys) == [user(1), user(3)])
    }

    @Test func `devices that a load finds before it fails are returned by the next load`() async throws {
        let memory = MemoryStore()
        try await addAccounts(1, to: memory)
        let now = Timestamp(rawValue: 0)
        let count = StoreSettings.maxPageEntries + 1
        for number in 1...count {
            let person = try principal(1, "device\(number)")
            _ = try await memory.open(DeviceDescription(id: person.device), of: person.user, token: nil, now: now)
            let token = PushToken(stored: .apns, text: "a\(number)", appID: "")
            try await memory.setPushToken(token, of: person.device, person.user, shown: person.shown, now: now)
        }
        let store = InterruptedStore(memory)
        let tokens = PushTokenService(store: store, time: ManualTime())
        store.failPage(2)
        #expect(await code { try await tokens.load() } == .storageUnavailable)
        let found = try await tokens.load()
        #expect(Set(found).count == count)
        #expect(try await tokens.load().isEmpty)
    }

    @Test func `devices that log out and are removed leave nothing`() async throws {
        let world = try await World()
        let accounts = world.messenger.accounts
        for number in 1...60 {
            let person = try principal(2, "device\(number)")
            _ = try await accounts.issueToken(for: DeviceDescription(id: person.device), of: person.user)
            try await world.setToken(person.device.rawValue, text: "token\(number)")
            try await accounts.logOut(person, token: nil, removeDevice: true)
            world.time.advance(by: .seconds(2))
        }
        #expect(try world.messenger.pushTokens.devices(of: [user(2)]) == [user(2): [device("phone")]])
        try await accounts.revokeTokens(of: user(2))
        #expect(try world.messenger.pushTokens.devices(of: [user(2)]).isEmpty)
        await world.messenger.shutdown()
    }

    @Test func `an account's devices in memory are no more than the account may have`() async throws {
        let store = MemoryStore()
        try await addAccounts(1, to: store)
        let time = ManualTime()
        let tokens = PushTokenService(store: store, time: time, roster: nil, maxDevices: 3)
        for number in 1...60 {
            let person = try principal(1, "device\(number)")
            let description = DeviceDescription(id: person.device)
            _ = try await store.open(description, of: person.user, token: nil, now: time.now())
            try await tokens.set(PushToken(stored: .apns, text: "token\(number)", appID: ""), of: person)
            // The token service is not told about this revocation.
            try await store.revoke(.device(person.device, of: person.user), now: time.now())
            #expect(tokens.devices(of: [person.user])[person.user, default: []].count <= 3)
            time.advance(by: .seconds(2))
        }
    }

    @Test func `of what other nodes tell, no more devices of an account stay in memory than it may have`()
        async throws
    {
        let world = try await World()
        let tokens = world.messenger.pushTokens
        let most = world.messenger.accounts.maxDevices
        for number in 1..<most { #expect(try tokens.heard(of: DeviceKey(user(2), device("other\(number)")))) }
        try await world.messenger.housekeeping(now: world.time.now())
        #expect(try tokens.devices(of: [user(2)])[user(2)]?.count == most, "it may have so many")
        #expect(try tokens.heard(of: DeviceKey(user(2), device("extra"))))
        try await world.messenger.housekeeping(now: world.time.now())
        #expect(try tokens.devices(of: [user(2)]) == [user(2): [device("phone")]])
        await world.messenger.shutdown()
    }

    @Test func `a deletion that the server finishes by itself forgets the devices`() async throws {
        let world = try await World()
        _ = try await world.messenger.accounts.close(user(2))
        try await world.messenger.deletions.delete(user(2))
        #expect(try world.messenger.pushTokens.devices(of: [user(2)]).isEmpty)
        await world.messenger.shutdown()
    }
}
