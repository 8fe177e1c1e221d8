// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore

/// Events from other threads that a loop has had no time to handle yet. This type does no I/O.
///
/// The events of one connection stay in order, except for ephemeral events (typing, presence, signals and commands).
/// Ephemeral events are delivered after all other events, because they may be lost. One typing notification in a
/// large group causes an event for each member. If these events were not delivered last, a few large groups would
/// delay everybody's messages and answers.
struct LateEvents {
    private(set) var events = Deque<LoopEvent>()
    /// The ephemeral events, which may be lost.
    private(set) var ephemeral = Deque<LoopEvent>()

    var isEmpty: Bool { events.isEmpty && ephemeral.isEmpty }

    mutating func append(_ further: ArraySlice<LoopEvent>) {
        for event in further {
            if case .ephemeral = event { ephemeral.append(event) } else { events.append(event) }
        }
    }

    mutating func removeFirst(_ count: Int) {
        events.removeFirst(count)
        releaseMemory()
    }

    mutating func removeFirstEphemeral(_ count: Int) {
        ephemeral.removeFirst(count)
        releaseMemory()
    }

    mutating func takeEphemeral() -> LoopEvent? {
        defer { releaseMemory() }
        return ephemeral.popFirst()
    }

    /// Gives back the memory of empty queues. Otherwise an empty queue would keep the memory for the largest number of
    /// events that it ever held.
    private mutating func releaseMemory() {
        if events.isEmpty { events = Deque() }
        if ephemeral.isEmpty { ephemeral = Deque() }
    }
}
