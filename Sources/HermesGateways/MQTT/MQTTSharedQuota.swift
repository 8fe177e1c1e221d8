// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// Counts the groups of shared subscriptions for each owner. The owner is an account or, for clients without an
/// account, their address.
///
/// Each group is one more receiver of every publication that its filter matches. It increases the cost of such a
/// publication by a microsecond. So publishers pay for the groups of other owners. For this reason, the number of
/// groups of each owner is limited. A group counts once for an owner, however many members the owner has in it. The
/// number of members is also limited (``membersPerGroup``), because a publication that few members can accept may
/// cause a search through many members.
///
/// State: a `Mutex`, taken when members join and leave.
final class MQTTSharedQuota: Sendable {
    private struct State {
        var shares: OwnerShares
        var memberships: OwnerShares
        /// The number of memberships, by owner and text of the subscription.
        var members: [CommitSource: [TopicText: Int]] = [:]
    }

    private let state: Mutex<State>

    /// The limit on an owner's memberships, as a multiple of its limit on groups.
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

    /// A membership in a group. It ends with the last reference to this object.
    final class Membership: Sendable {
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
    /// - Returns: nil if the owner has reached its limit on groups or on memberships.
    func join(_ text: String, of owner: CommitSource) -> Membership? {
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
        return isIn ? Membership(self, text, owner) : nil
    }

    /// The number of groups; a group counts once for each of its owners.
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
