// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps learned heartbeats in a small JSON file. An unreadable file counts as empty, because everything can be learned
/// again.
package final class FileHeartbeatStore: HeartbeatStore {
    private struct Record: Codable {
        var intervalMilliseconds: Int64
        var isStable: Bool
        var successes: Int
        var failures: Int
        var changedAt: Int64
    }

    private let file: URL
    private let memory: MemoryHeartbeatStore
    /// The queue that writes one change after another, away from the event loops.
    let queue = DispatchQueue(label: "hermes.heartbeats")

    /// Creates a store and reads its file, if there is one.
    ///
    /// - Parameter path: the file; its folder must exist.
    package init(path: String) {
        file = URL(filePath: path)
        let data = (try? Data(contentsOf: file)) ?? Data()
        let records = (try? JSONDecoder().decode([String: Record].self, from: data)) ?? [:]
        memory = MemoryHeartbeatStore(
            records.mapValues { record in
                LearnedHeartbeat(
                    interval: .milliseconds(record.intervalMilliseconds),
                    isStable: record.isStable,
                    successes: max(0, min(record.successes, HeartbeatAdaptation.successesBeforeStep)),
                    failures: max(0, min(record.failures, HeartbeatAdaptation.failuresBeforeRetreat)),
                    changedAt: max(0, record.changedAt)
                )
            }
        )
    }

    /// Returns the heartbeat that was learned for the network with this label; nil if there is none.
    package func learned(of network: String) -> LearnedHeartbeat? { memory.learned(of: network) }

    /// Keeps the heartbeat that was learned for the network with this label.
    package func remember(_ learned: LearnedHeartbeat, of network: String) {
        memory.remember(learned, of: network)
        queue.async { self.write() }
    }

    private func write() {
        let records = memory.all.mapValues { learned in
            Record(
                intervalMilliseconds: learned.interval.wholeMilliseconds,
                isStable: learned.isStable,
                successes: learned.successes,
                failures: learned.failures,
                changedAt: learned.changedAt
            )
        }
        // Values that cannot be written are learned again at the next launch.
        guard let data = try? JSONEncoder().encode(records) else { return }
        try? data.write(to: file, options: .atomic)
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
