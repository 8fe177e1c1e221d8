// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import Synchronization

/// The use of each budget, and what was refused or freed because of it; read when the metrics are requested.
///
/// State: one `Mutex` around the last values.
final class BudgetGauges: Sendable {
    private static func gauge(_ label: String, _ budget: String) -> Gauge {
        Gauge(label: label, dimensions: [("budget", budget)])
    }

    private let memory: MemoryBudget
    private let used = gauge("hermes_budget_used", "memory")
    private let limit = gauge("hermes_budget_limit", "memory")
    private let refused = Counter(label: "hermes_budget_refused_total", dimensions: [("budget", "memory")])
    private let last = Mutex(0)

    init(_ memory: MemoryBudget) { self.memory = memory }

    /// Updates the metrics.
    func read() {
        used.record(memory.used)
        limit.record(memory.limit)
        let reclaimed = memory.reclaimedBytes
        last.withLock { last in
            refused.increment(by: reclaimed - last)
            last = reclaimed
        }
    }
}
