// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NIOConcurrencyHelpers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps what was learned about networks, so that a client need not learn it again.
///
/// Called on the loops of connections: the methods must not wait for anything.
public protocol HeartbeatStore: Sendable {
    /// What is known of the network with this label; nil: nothing.
    func learned(of network: String) -> LearnedHeartbeat?

    /// Keeps what is known of the network with this label now.
    func remember(_ learned: LearnedHeartbeat, of network: String)
}

/// Keeps what was learned for as long as the process lives: of 20 networks, the last ones.
public final class MemoryHeartbeatStore: HeartbeatStore {
    /// As many as a phone meets in a week.
    static let maxNetworks = 20

    private let networks: NIOLockedValueBox<[String: LearnedHeartbeat]>

    /// Creates a store.
    ///
    /// - Parameter networks: what is known, by the networks' labels.
    public init(_ networks: [String: LearnedHeartbeat] = [:]) { self.networks = NIOLockedValueBox(networks) }

    /// What is known of the network with this label; nil: nothing.
    public func learned(of network: String) -> LearnedHeartbeat? { networks.withLockedValue { $0[network] } }

    /// Keeps what is known of the network with this label now.
    public func remember(_ learned: LearnedHeartbeat, of network: String) {
        networks.withLockedValue { networks in
            networks[network] = learned
            guard networks.count > Self.maxNetworks else { return }
            let others = networks.filter { $0.key != network }
            if let oldest = others.min(by: { $0.value.changedAt < $1.value.changedAt }) { networks[oldest.key] = nil }
        }
    }

    var all: [String: LearnedHeartbeat] { networks.withLockedValue { $0 } }
}

/// Keeps what was learned in a small JSON file. A file that cannot be read counts as empty, for all can be learned again.
public final class FileHeartbeatStore: HeartbeatStore {
    private struct Record: Codable {
        var intervalMilliseconds: Int64
        var isStable: Bool
        var successes: Int
        var failures: Int
        var changedAt: Int64
    }

    private let file: URL
    private let memory: MemoryHeartbeatStore
    /// Writes one after the other, off the loops.
    private let queue = DispatchQueue(label: "hermes.heartbeats")

    /// Reads the file, if it is there.
    ///
    /// - Parameter path: the file; its folder must exist.
    public init(path: String) {
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

    /// What is known of the network with this label; nil: nothing.
    public func learned(of network: String) -> LearnedHeartbeat? { memory.learned(of: network) }

    /// Keeps what is known of the network with this label now.
    public func remember(_ learned: LearnedHeartbeat, of network: String) {
        memory.remember(learned, of: network)
        queue.async { self.write() }
    }

    /// Waits until all is in the file.
    public func flush() { queue.sync {} }

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
        // What cannot be written is learned again at the next launch.
        guard let data = try? JSONEncoder().encode(records) else { return }
        try? data.write(to: file, options: .atomic)
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
