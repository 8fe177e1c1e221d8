// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct SuspendedAccountsTests {
    private let ann: UserID
    private let bob: UserID

    init() throws {
        ann = try #require(UserID(rawValue: 1))
        bob = try #require(UserID(rawValue: 2))
    }

    @Test func `changes one after the other are what they say, without a read`() {
        var accounts = SuspendedAccounts()
        for isDisabled in [true, true, false, true] {
            accounts.changeStarted(ann)
            #expect(accounts.changeEnded(ann, isDisabled: isDisabled) == nil)
            #expect(accounts.users == (isDisabled ? [ann] : []))
        }
    }

    @Test func `of changes that overlap, the store says which was the last`() throws {
        var accounts = SuspendedAccounts()
        for _ in 0..<2 { accounts.changeStarted(ann) }
        #expect(accounts.changeEnded(ann, isDisabled: false) == nil, "another one is running")
        let ended = accounts.changeEnded(ann, isDisabled: true)
        let change = try #require(ended)
        accounts.read(ann, isDisabled: false, after: change)
        #expect(accounts.users.isEmpty)
        accounts.changeStarted(ann)
        #expect(accounts.changeEnded(ann, isDisabled: true) == nil)
    }

    @Test func `a read that began before another change says nothing`() throws {
        var accounts = SuspendedAccounts()
        for _ in 0..<2 { accounts.changeStarted(ann) }
        _ = accounts.changeEnded(ann, isDisabled: true)
        let firstChange = accounts.changeEnded(ann, isDisabled: true)
        let first = try #require(firstChange)
        accounts.changeStarted(ann)
        accounts.read(ann, isDisabled: true, after: first)
        let secondChange = accounts.changeEnded(ann, isDisabled: false)
        let second = try #require(secondChange)
        accounts.read(ann, isDisabled: true, after: first)
        #expect(accounts.users.isEmpty)
        accounts.read(ann, isDisabled: false, after: second)
        accounts.read(ann, isDisabled: true, after: first)
        #expect(accounts.users.isEmpty)
    }

    @Test func `after a change that failed, the store says what became of it`() throws {
        var accounts = SuspendedAccounts()
        accounts.changeStarted(ann)
        accounts.changeStarted(bob)
        #expect(accounts.changeEnded(bob, isDisabled: true) == nil)
        let ended = accounts.changeEnded(ann, isDisabled: nil)
        let change = try #require(ended)
        #expect(accounts.users == [bob])
        accounts.read(ann, isDisabled: true, after: change)
        #expect(accounts.users == [ann, bob])
    }

    @Test func `a deleted account is forgotten after a while, the others stay`() {
        var accounts = SuspendedAccounts()
        for user in [ann, bob] {
            accounts.changeStarted(user)
            _ = accounts.changeEnded(user, isDisabled: true)
        }
        accounts.deleted(ann, now: .seconds(5))
        accounts.forget(now: .seconds(5) + SuspendedAccounts.memory - .nanoseconds(1))
        #expect(accounts.users == [ann, bob])
        accounts.forget(now: .seconds(5) + SuspendedAccounts.memory)
        #expect(accounts.users == [bob])
        accounts.deleted(ann, now: .seconds(5))
        accounts.forget(now: .seconds(5) + SuspendedAccounts.memory * 2)
        #expect(accounts.users == [bob])
    }

    @Test func `the deletion of a disabled account ends in forgetting it`() async throws {
        let (store, time) = (MemoryStore(), ManualTime())
        let messenger = Messenger(store, time: time)
        var users: [UserID] = []
        for name in ["ann", "bob"] {
            let new = NewAccount(nickName: NickName(stored: name, key: name), password: PasswordHash(phc: "$none$"))
            users.append(try await store.create(new, now: time.now()).id)
        }
        for user in users { try await messenger.accounts.setDisabled(user, true) }
        try await messenger.deleteAccount(users[0])
        try await messenger.housekeeping(now: time.now())
        #expect(users.map(messenger.accounts.isSuspended) == [true, true], "a will may still be published")
        time.advance(by: SuspendedAccounts.memory)
        try await messenger.housekeeping(now: time.now())
        #expect(users.map(messenger.accounts.isSuspended) == [false, true])
        await messenger.shutdown()
    }

    @Test func `a change of an account that is gone leaves nothing to read`() throws {
        var accounts = SuspendedAccounts()
        accounts.changeStarted(ann)
        let ended = accounts.changeEnded(ann, isDisabled: nil)
        accounts.read(ann, isDisabled: nil, after: try #require(ended))
        #expect(accounts.users.isEmpty)
        // The next change finds no earlier change.
        accounts.changeStarted(ann)
        #expect(accounts.changeEnded(ann, isDisabled: true) == nil)
    }
}
