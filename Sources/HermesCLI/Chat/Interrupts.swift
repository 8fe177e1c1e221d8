// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// Waits for SIGINT or SIGTERM, so that a command can end properly.
enum Interrupts {
    /// Returns when the process receives one of the signals, or when the task is cancelled.
    static func wait() async {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield() }
            source.resume()
            return source
        }
        for await _ in stream { break }
        for source in sources { source.cancel() }
    }
}
