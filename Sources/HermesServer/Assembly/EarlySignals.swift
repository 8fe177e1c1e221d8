// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Ends the process with exit code 0 where SIGTERM or SIGINT comes while the server starts: nobody is served yet, so there is
/// nobody to take leave of. From ``ready()`` on the signals are the service group's alone.
///
/// State: one atomic flag; the sources are not touched once they run.
final class EarlySignals: Sendable {
    private let isReady = Atomic(false)
    private let sources = Mutex<[any DispatchSourceSignal]>([])

    init(_ logger: @escaping @Sendable (String) -> Void) {
        let made = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map { number, name in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { [weak self] in
                guard self?.isReady.load(ordering: .acquiring) == false else { return }
                logger(name)
                exit(0)
            }
            source.resume()
            return source
        }
        sources.withLock { $0 = made }
    }

    /// The server can be drained now.
    func ready() {
        isReady.store(true, ordering: .releasing)
        sources.withLock { sources in
            for source in sources { source.cancel() }
            sources = []
        }
    }
}
