// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

/// What changes of groups cost the account that makes them.
@Suite(.timeLimit(.minutes(1))) struct GroupServiceTests {
    private let store = FakeStore()

    @Test("Whoever dissolves a group or removes members pays for everybody who is told")
    func everybodyToldIsPaidFor() async throws {
        var settings = MessageSettings()
        settings.groupEntriesPerHour = 30
        let messenger = Messenger(
            accountStore: store.base,
            messageStore: store,
            socialStore: store.base,
            sessionStore: store.base,
            pushTokenStore: store.base,
            messageSettings: settings,
            time: ManualTime()
        )
        try await addAccounts(6, to: store.base)
        let ann = try principal(1)
        let others = try (2...6).map { try user($0) }
        let groups = messenger.groups
        // 6 entries each: six are told of the creation, and of the dissolution.
        for _ in 1...2 {
            let group = try await groups.apply(.create(name: "group", members: others), by: ann)
            try await groups.apply(.dissolve(group.id), by: ann)
        }
        // The 30 entries of the hour are used up by the third.
        let group = try await groups.apply(.create(name: "group", members: others), by: ann)
        await #expect(throws: HermesError.self) {
            try await groups.apply(.changeMembers(group.id, MemberChanges(removed: others)), by: ann)
        }
        await messenger.shutdown()
    }
}
