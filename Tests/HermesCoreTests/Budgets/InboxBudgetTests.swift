// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct InboxBudgetTests {
    private let group: GroupID
    private let members: [UserID]

    init() throws {
        group = try #require(GroupID(rawValue: 1))
        members = try (1...3).map { try #require(UserID(rawValue: $0)) }
    }

    /// Sends messages of the same size as long as there is room.
    private func fill(
        _ budget: InboxBudget,
        _ shares: inout [EntrySource: Holding],
        by source: EntrySource,
        bytes: Int
    ) -> Int {
        var sent = 0
        while budget.hasRoom(
            in: shares[.server, default: Holding()],
            from: source,
            adding: bytes,
            share: { shares[$0, default: Holding()] }
        ) {
            for share in Set([source, source.whole, .server]) { shares[share, default: Holding()].add(bytes) }
            sent += 1
            guard sent < 10_000 else { break }
        }
        return sent
    }

    @Test func `the longest message that the settings allow has room in an empty inbox, from a member of a group too`()
    {
        let budget = InboxBudget(maxEntries: 1_000, maxBytes: 8 << 20)
        let longest = InboxBudget.weight(ofContent: 1 << 20)
        for source in [EntrySource.user(members[0]), .group(group, by: members[0])] {
            var shares: [EntrySource: Holding] = [:]
            #expect(fill(budget, &shares, by: source, bytes: longest) == 1, "a quarter is 2 MiB")
        }
    }

    @Test func `a member holds half of a group's share, and leaves the other half to others`() {
        let budget = InboxBudget(maxEntries: 80, maxBytes: 1 << 20)
        var shares: [EntrySource: Holding] = [:]
        #expect(fill(budget, &shares, by: .group(group, by: members[0]), bytes: 10) == 10)
        #expect(fill(budget, &shares, by: .group(group, by: members[1]), bytes: 10) == 5)
        #expect(fill(budget, &shares, by: .group(group, by: members[0]), bytes: 10) == 0)
        #expect(fill(budget, &shares, by: .group(group, by: members[2]), bytes: 10) == 2)
        #expect(fill(budget, &shares, by: .user(members[2]), bytes: 10) == 20, "a quarter")
    }

    @Test func `a group's former rows are in no source's range`() {
        for source in [EntrySource.server, .user(members[0]), .group(group, by: members[0]), .group(group, by: nil)] {
            #expect(!source.numbers.contains(-1))
        }
    }
}
