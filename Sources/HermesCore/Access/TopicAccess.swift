// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The current rules. They are replaced as a whole when their file changes.
///
/// State: a `Mutex` around the rules; the generation can be read without it.
package final class TopicAccess: Sendable {
    private let rules: Mutex<TopicRules>
    private let number = Atomic<UInt64>(1)
    /// Called after the rules were replaced, on the thread that replaced them.
    package let replaced = Hook<Void>()

    package init(_ rules: TopicRules = TopicRules()) { self.rules = Mutex(rules) }

    /// The current rules.
    package var current: TopicRules { rules.withLock { $0 } }

    /// A number that changes when the rules are replaced. A holder of ``BoundTopicRules`` compares this number and, if
    /// it has changed, rebuilds its rules.
    package var generation: UInt64 { number.load(ordering: .acquiring) }

    /// Replaces the rules. Does nothing if the rules are equal, because a change makes the server check all clients
    /// again.
    package func replace(with fresh: TopicRules) {
        let isChange = rules.withLock { rules in
            guard rules != fresh else { return false }
            rules = fresh
            number.add(1, ordering: .releasing)
            return true
        }
        if isChange { replaced() }
    }
}
