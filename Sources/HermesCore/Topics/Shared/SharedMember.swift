// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A subscriber that can be a member of shared subscriptions: it says how much it has to do.
package protocol SharedMember: TopicSubscriber {
    /// What it has not finished; one for all its shared subscriptions.
    var load: SharedLoad { get }
    /// What it may read; nil: everything.
    var reader: (any TopicReader)? { get }
}

extension SharedMember {
    package var reader: (any TopicReader)? { nil }
}

/// What one subscriber may read of what its filters match. Asked on any thread: shared subscriptions give a publication to
/// nobody who may not read it.
package protocol TopicReader: AnyObject, Sendable {
    func mayRead(_ topic: TopicName) -> Bool
}

/// How many publications a member has queued or sent without an acknowledgement yet.
///
/// The member adds and subtracts on its loop; groups on other loops read it, and count what is on the way to the member.
package final class SharedLoad: Sendable {
    private let value = Atomic(0)

    package init() {}

    package var current: Int { value.load(ordering: .relaxed) }

    package func add(_ count: Int = 1) { value.add(count, ordering: .relaxed) }

    package func subtract(_ count: Int = 1) { value.subtract(count, ordering: .relaxed) }
}

/// One member's part in a shared subscription; what the group chose the member for is delivered for it.
///
/// Owner: the loop of the shard where the member joined.
package class SharedSubscription: TopicSubscription {
    final let group: SharedGroup
    /// What the group knows of it.
    final var seat: SharedGroup.Seat?

    package override var isShared: Bool { true }

    override func optionsChanged() { seat?.change(options) }

    init(group: SharedGroup, options: SubscriptionOptions) {
        self.group = group
        super.init(filter: nil, place: 0, options: options)
    }
}

/// Knows the type of the member, and keeps it alive until it leaves.
final class HeldSharedSubscription<Member: SharedMember>: SharedSubscription {
    private let member: Unmanaged<Member>

    init(member: Member, group: SharedGroup, options: SubscriptionOptions) {
        self.member = .passRetained(member)
        super.init(group: group, options: options)
    }

    override func deliver(_ delivery: Delivery) {
        if isActive { member._withUnsafeGuaranteedRef { $0.deliver(delivery, for: self) } }
    }

    override func letGo() { member.release() }
}
