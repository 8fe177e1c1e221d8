// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// Pauses of reading, which slow down a peer that sends faster than others can follow.
extension Connection {
    /// Takes back the last frames of the run that the protocol's side is handling. They are decoded again after other
    /// connections have had their turn.
    func giveBack(_ bytes: Int, frames: Int) {
        givenBack = bytes
        tally.framesIn -= frames
    }

    /// Pauses reading until the connection has its turn, because this connection has much to do and others wait.
    func waitForTurn() {
        pause(.turn)
        loop.inTurn { self.resume(.turn) }
    }

    /// Makes the peer wait if subscribers do not keep up with its publications.
    package func keepPace(with outcome: PublishOutcome) {
        if outcome.isCongested { slowDown() }
        guard let ticket = outcome.ticket, ticket.weight > 0, phase == .open else { return }
        pause(.crowds)
        ensureBacklog().crowdBytes &+= ticket.weight
        measureMemory()
        loop.waitForCrowd(self, ticket)
    }

    /// Notes that a waiting publication was delivered to its crowd: the very many subscribers of its topic on this
    /// loop.
    func crowdServed(_ ticket: CrowdTicket) {
        let backlog = ensureBacklog()
        backlog.crowdBytes &-= ticket.weight
        measureMemory()
        if backlog.crowdBytes == 0 { resume(.crowds) }
    }

    /// Pauses reading for a moment, so that TCP slows the peer down. Called if another loop is far behind with this
    /// connection's publications, or if this connection exceeds its request rate.
    package func slowDown(for time: TimeAmount = .milliseconds(10)) {
        ensureBacklog().throttle.extend(until: loop.eventLoop.now + time)
        guard !isThrottled else { return }
        pause(.throttled)
        readOn(in: time)
    }

    /// Continues reading after the pause, as soon as the connection has its turn. The pause may have been extended. The
    /// connection waits for its turn because many connections with much to do may end their pauses together.
    private func readOn(in time: TimeAmount) {
        loop.eventLoop.scheduleTask(in: time) { [self] in
            loop.inTurn { [self] in
                let left = ensureBacklog().throttle.until - loop.eventLoop.now
                if left > .nanoseconds(0) { readOn(in: left) } else { resume(.throttled) }
            }
        }
    }
}
