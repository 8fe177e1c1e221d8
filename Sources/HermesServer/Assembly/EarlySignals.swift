// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization

/// Ends the process with exit code 0 on SIGTERM or SIGINT during the start, because no clients need to be told of the
/// shutdown yet. From ``ready()`` on, only the service group handles the two signals. SIGHUP never ends the process; a
/// SIGHUP during the start is remembered.
///
/// State: one atomic flag. `Sendable` is unchecked, because the sources are never used after their creation. They are
/// only kept alive.
package final class EarlySignals: @unchecked Sendable {
    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    private let isReady = Flag()
    private let sources: [any DispatchSourceSignal]
    /// Yields an element after each SIGHUP that arrives after the creation of this object. SIGHUPs share one element
    /// if they arrive before the reader takes it. Only one reader may use this stream.
    package let hangups: AsyncStream<Void>

    /// - Parameter log: gets the name of the signal that ends the process.
    package init(_ log: @escaping @Sendable (String) -> Void) {
        let isReady = isReady
        let (hangups, hangup) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.hangups = hangups
        signal(SIGHUP, SIG_IGN)
        let hangupSource = DispatchSource.makeSignalSource(
            signal: SIGHUP,
            queue: DispatchQueue(label: "hermes.hangups")
        )
        hangupSource.setEventHandler { hangup.yield() }
        // Another thread registers the source. A signal that arrives before the registration is lost, so this thread
        // waits until the source is registered.
        let registered = DispatchSemaphore(value: 0)
        hangupSource.setRegistrationHandler { registered.signal() }
        hangupSource.resume()
        _ = registered.wait(timeout: .now() + 1)
        let ends = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map { number, name in
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
        sources = ends + [hangupSource]
    }

    /// Leaves SIGTERM and SIGINT to the service group, because the server can be drained from now on.
    package func ready() { isReady.isSet.store(true, ordering: .releasing) }
}
