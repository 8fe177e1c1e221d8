// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Ends the process with exit code 0 where SIGTERM or SIGINT comes while the server starts: nobody is served yet, so there is
/// nobody to take leave of. From ``ready()`` on the signals are the service group's alone.
///
/// State: one atomic flag. Unchecked, because the sources are made once, and kept so that they live; nobody touches them.
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

    /// The server can be drained now.
    func ready() { isReady.isSet.store(true, ordering: .releasing) }
}
