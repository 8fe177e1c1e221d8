// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Schedules heartbeats, and learns from their outcomes which interval the network allows.
extension ConnectionEngine.StateMachine {
    /// Notes the interval that the server suggests for the network. The suggestion is used only if no interval was
    /// learned; an earlier suggestion does not count as learned.
    mutating func heartbeatSuggested(_ interval: Duration) {
        let isNew = learned.changedAt == 0 && learned.successes == 0 && learned.failures == 0
        guard heartbeat.adaptation != nil, isNew else { return }
        learned = Self.known(LearnedHeartbeat(interval: interval), heartbeat)
    }

    /// Reports that bytes arrived from the server.
    mutating func bytesReceived(now: NIODeadline) {
        switch state {
        case .live(var live):
            live.lastReceived = now
            if case .unanswered(_, _, .both) = live.heartbeat {
                learn(now: now) { $0.succeeded(within: $1, date: $2) }
            }
            live.heartbeat = .due(nextBeat(live))
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that bytes other than a heartbeat were sent to the server. They show the server that the client is
    /// alive. Only incoming bytes show the client that the server is alive.
    mutating func bytesWritten(now: NIODeadline) {
        switch state {
        case .live(var live):
            guard heartbeat.restartsOnWrite else { return }
            live.lastWritten = now
            if case .due = live.heartbeat { live.heartbeat = .due(nextBeat(live)) }
            state = .live(live)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return
        }
    }

    /// Reports that a request was not answered in time. If no other bytes have arrived recently, one heartbeat checks
    /// the connection at once.
    mutating func requestExpired(now: NIODeadline) -> [Action] {
        switch state {
        case .live(let live):
            guard case .due = live.heartbeat, let answerTimeout = heartbeat.answerTimeout,
                now - live.lastReceived >= TimeAmount(answerTimeout)
            else { return [] }
            return beat(live, tries: heartbeat.tries, evidence: .none, now: now)
        case .idle, .connecting, .authenticating, .lost, .waiting, .stopped:
            return []
        }
    }

    mutating func beat(_ live: Live, tries: Int, evidence: Evidence, now: NIODeadline) -> [Action] {
        var live = live
        live.lastWritten = now
        if let answerTimeout = heartbeat.answerTimeout {
            let until = now + TimeAmount(answerTimeout)
            live.heartbeat = .unanswered(until: until, tries: tries, evidence: evidence)
        } else {
            live.heartbeat = .due(nextBeat(live))
        }
        state = .live(live)
        return [.sendHeartbeat]
    }

    /// The time between two heartbeats: the policy's interval or, with an adaptation, the learned interval. In the
    /// foreground, the learned interval is limited to the policy's interval. The server's limit always applies.
    var interval: TimeAmount {
        var interval = heartbeat.interval
        if heartbeat.adaptation != nil {
            interval = conditions.appState == .foreground ? min(interval, learned.interval) : learned.interval
        }
        return TimeAmount(min(interval, serverLimit ?? interval))
    }

    /// Returns the time of the next heartbeat: one interval after the last incoming byte or the last write, whichever
    /// is earlier. If heartbeats have no answers, only writes count.
    func nextBeat(_ live: Live) -> NIODeadline {
        let last = heartbeat.answerTimeout == nil ? live.lastWritten : min(live.lastWritten, live.lastReceived)
        return last + interval
    }

    /// Returns the evidence that a heartbeat gives if it is sent now. The evidence is `both` if the interval is at
    /// least the learned interval, and if nothing has arrived since the last heartbeat except its answer.
    func evidence(_ live: Live, now: NIODeadline) -> Evidence {
        let learned = TimeAmount(learned.interval)
        let heard = now - live.lastReceived + TimeAmount(heartbeat.answerTimeout ?? .zero)
        return interval >= learned && heard >= learned ? .both : .failure
    }

    mutating func learn(
        now: NIODeadline,
        _ body: (inout LearnedHeartbeat, HeartbeatAdaptation, Int64) -> Void
    ) {
        guard let bounds = heartbeat.adaptation else { return }
        body(&learned, bounds, Self.seconds(now) + dateOffset)
    }

    static func seconds(_ moment: NIODeadline) -> Int64 { Int64(moment.uptimeNanoseconds / 1_000_000_000) }

    static func known(_ learned: LearnedHeartbeat?, _ policy: HeartbeatPolicy) -> LearnedHeartbeat {
        let known = learned ?? LearnedHeartbeat(interval: policy.interval)
        return policy.adaptation.map { known.clamped(to: $0) } ?? known
    }
}
