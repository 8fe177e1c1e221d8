// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// Counts the ephemeral events that wait for one event loop. Such events may be lost, and a busy loop delivers them
/// late. So this object limits the waiting typing events, signals and commands. Presence events are always accepted,
/// because their sender first checks whether the loop is behind.
///
/// State: an atomic number; callable on any thread.
final class WaitingEphemera: Sendable {
    /// The weight of all events above which no typing event is added, and presence is reported later.
    static let maxSmall = 16_384
    /// The weight of all events above which no signal or command is added. It is about 32 MiB.
    static let max = 32_768

    private let weight = Atomic<Int>(0)

    /// The weight of all waiting events. Each event adds one, and each KiB of its payload adds one more.
    var sum: Int { weight.load(ordering: .relaxed) }

    var isFull: Bool { sum >= Self.maxSmall }

    /// Counts an event before it is posted.
    ///
    /// - Returns: false if there is no room for the event. In that case, the event is not counted.
    func add(_ event: EphemeralEvent) -> Bool {
        let (own, most) = Self.weight(event)
        guard sum <= most - own else { return false }
        weight.wrappingAdd(own, ordering: .relaxed)
        return true
    }

    /// Removes a delivered event from the count.
    func remove(_ event: EphemeralEvent) { weight.wrappingSubtract(Self.weight(event).own, ordering: .relaxed) }

    private static func weight(_ event: EphemeralEvent) -> (own: Int, most: Int) {
        switch event {
        case .typing: (1, maxSmall)
        case .presence: (1, .max)
        case .signal(_, _, let payload), .command(let payload): (1 + payload.count / 1_024, max)
        }
    }
}
