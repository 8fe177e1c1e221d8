// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The faults of a client's first connections and of its first inbox entries. The same seed gives the same faults.
/// Later connections and entries have none.
package struct FaultSchedule: Sendable {
    private let seed: UInt64
    private let faultyConnections: Int

    /// - Parameters:
    ///   - seed: chooses the faults.
    ///   - faultyConnections: the number of faulty connections.
    package init(seed: UInt64, faultyConnections: Int) {
        self.seed = seed
        self.faultyConnections = faultyConnections
    }

    /// Returns the fault of the connection with this number; the first is 1.
    package func fault(_ number: Int) -> FaultyProxy.Fault {
        guard number <= faultyConnections else { return FaultyProxy.Fault() }
        var random = SplitMix(state: seed &* 0x2545_F491_4F6C_DD1D &+ UInt64(number))
        let delay = TimeAmount.microseconds(.random(in: 0...5000, using: &random))
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            let bytes = Int.random(in: 1...3000, using: &random)
            return FaultyProxy.Fault(delay: delay, end: .cut(afterBytes: bytes))
        case 4..<6:
            let bytes = Int.random(in: 1...3000, using: &random)
            return FaultyProxy.Fault(delay: delay, end: .silence(afterBytes: bytes))
        case 6..<8:
            // The client may already be using its next connection when this one reaches the server.
            let late = TimeAmount.milliseconds(.random(in: 1...500, using: &random))
            let bytes = Int.random(in: 1...3000, using: &random)
            return FaultyProxy.Fault(delay: delay, connectDelay: late, end: .cut(afterBytes: bytes))
        default:
            // Forgets the connection after a silence that is shorter than two heartbeats, or cuts it if it is never
            // silent for so long.
            let silence = TimeAmount.milliseconds(.random(in: 30...60, using: &random))
            return FaultyProxy.Fault(delay: delay, end: .cut(afterBytes: 6000), forgottenAfter: silence)
        }
    }
    /// Returns what happens to the inbox entry with this seq when it arrives for the first time.
    package func verdict(onEntry seq: UInt64) -> EventFaults.Verdict {
        // Later entries always pass, so that they reveal which earlier entries are missing.
        guard seq <= Self.faultyEntries else { return .pass }
        var random = SplitMix(state: seed &* 0x9E6D_62D0_6F6A_9A9B &+ seq)
        switch Int.random(in: 0..<20, using: &random) {
        case 0: return .lose
        case 1..<4: return .twice
        default: return .pass
        }
    }

    private static let faultyEntries: UInt64 = 60
}
