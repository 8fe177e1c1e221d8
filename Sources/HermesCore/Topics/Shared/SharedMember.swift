// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A subscriber that can be a member of shared subscriptions and reports its load.
package protocol SharedMember: TopicSubscriber {
    /// The subscriber's unfinished work in all its shared subscriptions.
    var load: SharedLoad { get }
    /// The subscriber's permissions; nil if it may read everything.
    var reader: (any TopicReader)? { get }
}

extension SharedMember {
    package var reader: (any TopicReader)? { nil }
}

/// The topics that one subscriber may read. This is used on any thread. A shared subscription gives a publication only
/// to a member that may read it.
package protocol TopicReader: AnyObject, Sendable {
    func mayRead(_ topic: TopicName) -> Bool

    /// The length of the longest message that the subscriber accepts, in bytes, including the topic.
    var maxMessageBytes: Int { get }

    /// Returns the permissions that remain when the subscriber's account no longer has this name. Returns this object
    /// if the permissions do not depend on the name.
    ///
    /// - Parameter name: the name, in the form of ``NickName/key``.
    func without(_ name: String) -> any TopicReader
}

extension TopicReader {
    package func without(_ name: String) -> any TopicReader { self }

    package var maxMessageBytes: Int { .max }
}

/// The number of a member's queued or sent publications that are not acknowledged.
///
/// The member changes the number on its own loop. Groups on other loops read the number, and add the publications that
/// are on the way to the member.
package final class SharedLoad: Sendable {
    private let value = Atomic(0)
    private let hasFallenBehind = Atomic(false)
    private let isQueueFull = Atomic(false)

    /// The load of a member that is chosen only if no other member can be chosen.
    static let most = Int.max / 4

    package init() {}

    package var current: Int {
        value.load(ordering: .relaxed) &+ (isBehind ? Self.most : 0)
    }

    /// Whether the member processes publications more slowly than they arrive.
    package var isBehind: Bool { hasFallenBehind.load(ordering: .relaxed) }

    /// Records that the member processes publications more slowly than they arrive. The count of publications does not
    /// show this for QoS 0, because publications with QoS 0 are complete when they are sent.
    package func fallBehind() { hasFallenBehind.store(true, ordering: .relaxed) }

    package func catchUp() { hasFallenBehind.store(false, ordering: .relaxed) }

    /// Whether the member cannot queue another publication of QoS 1 or 2.
    package var isFull: Bool {
        get { isQueueFull.load(ordering: .relaxed) }
        set { isQueueFull.store(newValue, ordering: .relaxed) }
    }

    package func add(_ count: Int = 1) { value.add(count, ordering: .relaxed) }

    package func subtract(_ count: Int = 1) { value.subtract(count, ordering: .relaxed) }
}

/// One member's part in a shared subscription. The publications for which the group chooses this member are delivered
/// through it.
///
/// Owner: the loop of the shard where the member joined.
package class SharedSubscription: TopicSubscription {
    final let group: SharedGroup
    /// The member's seat in the group.
    final var seat: SharedGroup.Seat?

    package override var isShared: Bool { true }

    override func optionsChanged() { seat?.change(options) }

    /// Marks the member as leaving: from now on, the group chooses other members.
    /// ``TopicShard/unsubscribe(_:givingBack:)`` must follow.
    package final func leave() {
        isActive = false
        seat?.leave()
    }

    init(group: SharedGroup, options: SubscriptionOptions) {
        self.group = group
        super.init(filter: nil, place: 0, options: options)
    }
}

/// A shared subscription that knows the type of its member, and keeps the member alive until the member leaves.
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
