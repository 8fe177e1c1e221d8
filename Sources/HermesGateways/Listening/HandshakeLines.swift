// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import Synchronization

/// Lets the TLS handshakes of all listeners take turns, because a handshake may cost a few milliseconds of an event
/// loop, and costs the client nothing. Each loop works on one handshake at a time, and serves its other connections
/// in between. The clients' addresses take turns.
///
/// State: a `Mutex` around the queues of the loops, taken once for each handshake.
package final class HandshakeLines: Sendable {
    private let lines = Mutex<[ObjectIdentifier: NIOLoopBound<HandshakeLine>]>([:])

    package init() {}

    /// Adds TLS to the end of a pipeline. Called on the channel's loop.
    package func add(
        _ handler: any ChannelHandler,
        to channel: any Channel,
        from address: ConnectionCounter.Address
    ) throws {
        let gate = HandshakeGate(line(of: channel.eventLoop), "\(address)")
        try channel.pipeline.syncOperations.addHandlers([gate, handler, HandshakeEnd(gate)])
    }

    private func line(of loop: any EventLoop) -> HandshakeLine {
        lines.withLock { lines in
            let line = lines[ObjectIdentifier(loop)] ?? NIOLoopBound(HandshakeLine(loop), eventLoop: loop)
            lines[ObjectIdentifier(loop)] = line
            return line
        }.value
    }
}
