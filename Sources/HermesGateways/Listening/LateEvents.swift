// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore

/// Events of other threads for which a loop had no time yet. Does no I/O.
///
/// The events of one connection stay in order, except that signs of typing, presence and signals come behind everything
/// else: they may be lost, and one sign of typing in a large group is an event for each of its members. Otherwise a few
/// such groups would delay everybody's messages and answers.
struct LateEvents {
    private(set) var events = Deque<LoopEvent>()
    /// Those that may be lost.
    private(set) var ephemeral = Deque<LoopEvent>()

    var isEmpty: Bool { events.isEmpty && ephemeral.isEmpty }

    mutating func append(_ further: ArraySlice<LoopEvent>) {
        for event in further {
            if case .ephemeral = event { ephemeral.append(event) } else { events.append(event) }
        }
    }

    mutating func removeFirst(_ count: Int) { events.removeFirst(count) }

    mutating func removeFirstEphemeral(_ count: Int) { ephemeral.removeFirst(count) }

    mutating func takeEphemeral() -> LoopEvent? { ephemeral.popFirst() }
}
