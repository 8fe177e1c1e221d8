// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Ends the process with exit code 0 on SIGTERM or SIGINT during the start, when there are no clients to take leave of.
/// From ``ready()`` on, only the service group handles the signals.
///
/// State: one atomic flag. Unchecked, because the sources are created once and only kept alive.
final class EarlySignals: @unchecked Sendable {
    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    private let isReady = Flag()
    private let sources: [any DispatchSourceSignal]

    /// - Parameter log: gets the name of the signal that ends the process.
    init(_ log: @escaping @Sendable (String) -> Void) {
        let isReady = isReady
        sources = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map { number, name in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                guard !isReady.isSet.load(ordering: .acquiring) else { return }
                log(name)
                exit(0)
            }
            source.resume()
            return source
        }
    }

    /// The server can be drained from now on.
    func ready() { isReady.isSet.store(true, ordering: .releasing) }
}
