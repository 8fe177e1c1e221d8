// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The ephemeral events that wait for one event loop. Bounds them: they may be lost, and a loop that is busy takes its
/// time for them.
///
/// State: an atomic number; callable on any thread.
final class WaitingEphemera: Sendable {
    /// The weight of all events above which no sign of typing, and no notice of presence, is added. Whoever is not told
    /// of somebody's presence is told later.
    static let maxSmall = 16_384
    /// The same for all other events: some 32 MiB.
    static let max = 32_768

    private let weight = Atomic<Int>(0)

    /// The weight of all: each event and each KiB counts one.
    var sum: Int { weight.load(ordering: .relaxed) }

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
        case .typing, .presence: (1, maxSmall)
        case .signal(_, _, let payload), .command(let payload): (1 + payload.count / 1_024, max)
        }
    }
}
