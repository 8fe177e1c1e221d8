// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import Synchronization

/// How much of each budget is used, and what was refused or taken back because of it; read when somebody asks for the
/// metrics.
///
/// State: one `Mutex` around what was read last.
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

    /// Brings the metrics up to date.
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
