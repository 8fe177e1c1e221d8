// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// The cost that contacts may cause for others.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ContactServiceTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let messenger: Messenger

    init() {
        messenger = Messenger(store, time: time)
    }

    /// Creates the accounts from 1 to `count`.
    private func people(_ count: Int) async throws -> [Principal] {
        var people: [Principal] = []
        let device = try #require(DeviceID("phone"))
        for number in 1...count {
            let name = NickName(stored: "user\(number)", key: "user\(number)")
            let new = NewAccount(nickName: name, password: PasswordHash(phc: "$none$"))
            let account = try await store.create(new, now: Timestamp(rawValue: 0))
            people.append(Principal(user: account.id, nickName: name, device: device))
        }
        return people
    }

    @Test
    func `an account blocks 600 others an hour, each of whom stays in its list; it ends blocks as it likes`()
        async throws
    {
        let people = try await people(4)
        let contacts = messenger.contacts
        func block(_ peer: Int, by person: Int, _ command: ContactCommand = .block) async throws {
            try await contacts.apply(command, to: people[peer].user, by: people[person])
        }
        #expect(ContactService.blocksPerHour == 600)
        for number in 0..<600 { try await block(1 + number % 2, by: 0) }
        await #expect {
            try await block(1, by: 0)
        } throws: { error in
            // The allowance is 600 units an hour, so the next unit returns after six seconds.
            let error = error as? HermesError
            return error?.code == .rateLimited && error?.retryAfter.map { $0 > .seconds(5) && $0 < .seconds(7) } == true
        }
        try await block(1, by: 0, .unblock)
        try await block(1, by: 3)
        // One unit returns after six seconds. A part of a unit is not enough.
        time.advance(by: .seconds(5))
        await #expect(throws: HermesError.self) { try await block(1, by: 0) }
        time.advance(by: .seconds(1))
        try await block(1, by: 0)
        await #expect(throws: HermesError.self) { try await block(1, by: 0) }
        await messenger.shutdown()
    }

    @Test
    func `a page of friends looks at 10,000 rows at most, and says at how many it looked`() async throws {
        let people = try await people(ContactService.maxLookedAt + 2)
        let (user, last) = (people[0], people[people.count - 1])
        // All accounts except the last are blocked. The last account becomes the only friend.
        var operations: [WriteOperation] = people.dropFirst().dropLast().map {
            .contact(.block, by: user, peer: $0.user, message: "")
        }
        _ = try store.commit(operations, now: Timestamp(rawValue: 0))
        let contacts = messenger.contacts
        let beyond = try await contacts.accepted(of: user.user, skipped: 0, limit: 10)
        #expect(beyond.found.isEmpty && beyond.lookedAt == ContactService.maxLookedAt)
        operations = [
            .contact(.unblock, by: user, peer: people[1].user, message: ""),
            .contact(.request, by: user, peer: last.user, message: ""),
            .contact(.accept, by: last, peer: user.user, message: ""),
        ]
        _ = try store.commit(operations, now: Timestamp(rawValue: 0))
        let page = try await contacts.accepted(of: user.user, skipped: 0, limit: 10)
        #expect(page.found.map(\.account.id) == [last.user] && page.lookedAt == ContactService.maxLookedAt)
        // Rows that are skipped are also looked at.
        let skipped = try await contacts.accepted(of: user.user, skipped: 1, limit: 10)
        #expect(skipped.found.isEmpty && skipped.lookedAt == ContactService.maxLookedAt)
        await messenger.shutdown()
    }
}
