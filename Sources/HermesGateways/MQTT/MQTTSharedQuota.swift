// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The numbers of groups of shared subscriptions that the clients of each account, and of each address without account,
/// are in.
///
/// Each group is one more receiver of whatever its filter matches, whoever publishes it, and each matching publication
/// costs a microsecond more: others pay for the group. Members of one group count once, and there is a bound of
/// memberships, too (``membersPerGroup``): a publication that few members can take looks at many.
///
/// State: a `Mutex`; taken when members join and leave.
final class MQTTSharedQuota: Sendable {
    private struct State {
        var shares: OwnerShares
        var memberships: OwnerShares
        /// The number of memberships, by owner and text of the subscription.
        var members: [CommitSource: [TopicText: Int]] = [:]
    }

    private let state: Mutex<State>

    /// An owner may have this many memberships for each group that it may have.
    static let membersPerGroup = 16

    init(_ limit: SharedLimit) {
        func times(_ count: Int) -> Int {
            let (product, isTooLarge) = count.multipliedReportingOverflow(by: Self.membersPerGroup)
            return isTooLarge ? .max : product
        }
        let memberships = SharedLimit(
            times(limit.total),
            perAccount: times(limit.perAccount),
            perAddress: times(limit.perAddress)
        )
        state = Mutex(State(shares: OwnerShares(entries: limit), memberships: OwnerShares(entries: memberships)))
    }

    /// A membership; it ends with the last reference.
    final class Place: Sendable {
        private let quota: MQTTSharedQuota
        private let text: TopicText
        private let owner: CommitSource

        fileprivate init(_ quota: MQTTSharedQuota, _ text: TopicText, _ owner: CommitSource) {
            self.quota = quota
            self.text = text
            self.owner = owner
        }

        deinit { quota.leave(text, of: owner) }
    }

    /// Counts a membership.
    ///
    /// - Parameter text: the shared subscription, `$share/group/filter`.
    /// - Returns: nil if the owner is in as many groups as it may, or its groups have as many members.
    func join(_ text: String, of owner: CommitSource) -> Place? {
        let text = TopicText(text)
        let isIn = state.withLock { state in
            let known = state.members[owner]?[text] ?? 0
            let one = Holding(entries: 1)
            guard state.memberships.hasRoom(for: one, of: owner), known > 0 || state.shares.take(one, of: owner) else {
                return false
            }
            state.memberships.add(one, of: owner)
            state.members[owner, default: [:]][text] = known + 1
            return true
        }
        return isIn ? Place(self, text, owner) : nil
    }

    /// The number of groups, each once for each owner.
    var count: Int { state.withLock { $0.shares.tally.total.entries } }

    private func leave(_ text: TopicText, of owner: CommitSource) {
        state.withLock { state in
            guard let known = state.members[owner]?[text] else { return }
            state.memberships.add(Holding(entries: -1), of: owner)
            if known > 1 {
                state.members[owner]?[text] = known - 1
                return
            }
            state.members[owner]?[text] = nil
            if state.members[owner]?.isEmpty == true { state.members[owner] = nil }
            state.shares.add(Holding(entries: -1), of: owner)
        }
    }
}
