// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The rules in force, replaced as a whole when their file changes.
///
/// State: one `Mutex` around the rules, one around who is told; the generation can be read without them.
package final class TopicAccess: Sendable {
    private let rules: Mutex<TopicRules>
    private let number = Atomic<UInt64>(1)
    private let replaced = Mutex<@Sendable () -> Void>({})

    package init(_ rules: TopicRules = TopicRules()) { self.rules = Mutex(rules) }

    /// The rules now.
    package var current: TopicRules { rules.withLock { $0 } }

    /// Another number each time the rules are replaced: whoever keeps ``BoundTopicRules`` compares it, and makes them
    /// anew once it has moved.
    package var generation: UInt64 { number.load(ordering: .acquiring) }

    /// Has `handler` called each time other rules are in force, on the thread that brought them. One handler; it replaces
    /// the one before.
    package func whenReplaced(_ handler: @escaping @Sendable () -> Void) {
        replaced.withLock { $0 = handler }
    }

    /// Puts other rules in force.
    package func replace(with fresh: TopicRules) {
        rules.withLock { rules in
            rules = fresh
            number.add(1, ordering: .releasing)
        }
        replaced.withLock { $0 }()
    }
}
