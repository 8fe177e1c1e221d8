// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOPosix
import Synchronization

/// Notifies each loop context of a group after its loop has run all due tasks, and before the loop polls its sockets.
///
/// State: a table that is written once, by the first ``LoopContexts`` of the group.
package final class LoopTicks: NIOEventLoopMetricsDelegate {
    /// The contexts by the identifiers of their loops. Each context is used only on its own loop.
    private final class Table: Sendable {
        let contexts: [ObjectIdentifier: LoopContext]

        init(_ contexts: [ObjectIdentifier: LoopContext]) { self.contexts = contexts }
    }

    private let table = AtomicLazyReference<Table>()

    package init() {}

    func report(to contexts: [ObjectIdentifier: LoopContext]) { _ = table.storeIfNil(Table(contexts)) }

    package func processedTick(info: NIOEventLoopTickInfo) { table.load()?.contexts[info.eventLoopID]?.tickEnded() }
}
