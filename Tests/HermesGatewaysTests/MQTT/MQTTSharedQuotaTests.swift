// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@testable import HermesGateways

/// The limits for groups and their members, because other clients pay for them.
struct MQTTSharedQuotaTests {
    @Test
    func `an owner is in so many groups, which have so many members on average; who leaves makes room`() throws {
        let quota = MQTTSharedQuota(SharedLimit(1_000, perAccount: 2, perAddress: 1))
        let ann = CommitSource.subject("ann")
        let one = try #require(quota.join("$share/1/t", of: ann))
        let two = quota.join("$share/2/t", of: ann)
        #expect(two != nil)
        #expect(quota.join("$share/3/t", of: ann) == nil)
        var members = (0..<2 * MQTTSharedQuota.membersPerGroup - 2).map { _ in quota.join("$share/1/t", of: ann) }
        #expect(members.allSatisfy { $0 != nil })
        #expect(quota.join("$share/1/t", of: ann) == nil)
        #expect(quota.join("$share/1/t", of: CommitSource(host: "10.0.0.1")) != nil)
        members.removeLast()
        #expect(quota.join("$share/2/t", of: ann) != nil)
        withExtendedLifetime((one, two, members)) {}
    }
}
