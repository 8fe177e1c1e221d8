// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// One loop's queue of the handshakes for which bytes have arrived. Owner: the loop.
final class HandshakeLine {
    private let loop: any EventLoop
    private var waiting = TurnTable<String, Deque<HandshakeGate>>()
    private var isScheduled = false

    init(_ loop: any EventLoop) { self.loop = loop }

    func append(_ gate: HandshakeGate) {
        waiting.update(gate.source, default: []) { $0.append(gate) }
        schedule()
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        // The turn comes after a pause, so that the loop serves its sockets first.
        loop.assumeIsolated().scheduleTask(in: TurnQueue.pause) { self.takeTurn() }
    }

    private func takeTurn() {
        let next = waiting.next { gates in (gates.popFirst(), isEmpty: gates.isEmpty) }
        next?.takeTurn()
        // The next turn is scheduled only now, after the handshake, because the loop runs tasks that are already due
        // before it serves its sockets.
        isScheduled = false
        if next != nil { schedule() }
    }
}

@available(*, unavailable)
extension HandshakeLine: Sendable {}
