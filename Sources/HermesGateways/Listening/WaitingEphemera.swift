// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The ephemeral events that wait for one event loop. They may be lost, and a loop that is busy takes its time for them.
/// So signs of typing, signals and commands are bounded here. Notices of presence are always taken: whoever gives them
/// looks first whether the loop is behind.
///
/// State: an atomic number; callable on any thread.
final class WaitingEphemera: Sendable {
    /// The weight of all events above which no sign of typing is added, and presence is told later.
    static let maxSmall = 16_384
    /// The same for signals and commands: some 32 MiB.
    static let max = 32_768

    private let weight = Atomic<Int>(0)

    /// The weight of all: each event and each KiB counts one.
    var sum: Int { weight.load(ordering: .relaxed) }

    var isFull: Bool { sum >= Self.maxSmall }

    /// - Returns: whether there is room for the event.
    func add(_ event: EphemeralEvent) -> Bool {
        let (own, most) = Self.weight(event)
        guard sum <= most - own else { return false }
        weight.wrappingAdd(own, ordering: .relaxed)
        return true
    }

    /// The event is delivered.
    func remove(_ event: EphemeralEvent) { weight.wrappingSubtract(Self.weight(event).own, ordering: .relaxed) }

    private static func weight(_ event: EphemeralEvent) -> (own: Int, most: Int) {
        switch event {
        case .typing: (1, maxSmall)
        case .presence: (1, .max)
        case .signal(_, _, let payload), .command(let payload): (1 + payload.count / 1_024, max)
        }
    }
}
