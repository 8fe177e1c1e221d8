// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import NIOCore
import Synchronization

/// Wills that wait for their delay (3.1.3.2.2).
///
/// State: a `Mutex` around a dictionary; nothing is called under it.
final class MQTTWills: Sendable {
    private struct Waiting: Sendable {
        let number: UInt64
        let will: MQTTPendingWill
        let loop: LoopContext
    }

    private struct State: Sendable {
        var waiting: [SessionKey: Waiting] = [:]
        var nextNumber: UInt64 = 0
        /// Their approximate bytes.
        var bytes = 0
    }

    /// The most bytes of waiting wills; beyond it, a will is published at once rather than never.
    static let maxWaitingBytes = 256 << 20

    private let state = Mutex(State())
    private let metrics = MQTTMetrics()
    private let durable: DurableSessions
    private let time: any TimeSource

    init(durable: DurableSessions, time: any TimeSource) {
        self.durable = durable
        self.time = time
    }

    /// A connection ended without DISCONNECT: its will is published after its delay, or when the session ends,
    /// whichever comes first [MQTT-3.1.3-9]. Called on the connection's loop.
    func ended(_ will: MQTTPendingWill, of key: SessionKey, sessionExpiry: Duration, on loop: LoopContext) {
        let delay = min(will.delay, sessionExpiry)
        guard delay > .zero else { return publish(will, on: loop) }
        let number: UInt64? = state.withLock { state in
            state.bytes -= state.waiting.removeValue(forKey: key)?.will.weight ?? 0
            guard state.bytes + will.weight <= Self.maxWaitingBytes else { return nil }
            state.bytes += will.weight
            state.nextNumber += 1
            state.waiting[key] = Waiting(number: state.nextNumber, will: will, loop: loop)
            return state.nextNumber
        }
        guard let number else { return publish(will, on: loop) }
        loop.eventLoop.scheduleTask(in: .nanoseconds(Int64(min(delay / .nanoseconds(1), 1e18)))) {
            if let due = self.take(key, number: number) { self.publish(due.will, on: due.loop) }
        }
    }

    /// The client returned before its will was due: the will is discarded, unless the session starts clean.
    func connected(_ key: SessionKey, isClean: Bool) {
        guard let waiting = take(key), isClean else { return }
        let wills = self
        waiting.loop.post(.run { wills.publish(waiting.will, on: waiting.loop) })
    }

    private func take(_ key: SessionKey, number: UInt64? = nil) -> Waiting? {
        state.withLock { state in
            guard let waiting = state.waiting[key], number == nil || waiting.number == number else { return nil }
            state.waiting[key] = nil
            state.bytes -= waiting.will.weight
            return waiting
        }
    }

    /// Publishes for somebody who is not there any more. Those who are connected get it after the commit, as they get a
    /// PUBLISH; should that fail they get it all the same, for nobody sends it again.
    private func publish(_ will: MQTTPendingWill, on loop: LoopContext) {
        let now = time.now()
        let publication = will.publication.living(from: now, insteadOf: will.givenAt)
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
        let decided = publication.deciding(DecidedShares(targets))
        guard publication.retain || !targets.isEmpty else {
            loop.topics.publish(decided)
            return
        }
        durable.publish(
            StoredPublication(publication, publishedAt: now),
            targets: targets,
            retains: publication.retain,
            source: will.source
        ) { [metrics] result in
            if case .failure = result { metrics.droppedUnstored.increment() }
            loop.post(.run { loop.topics.publish(decided) })
        }
    }
}

extension Publication {
    /// The same with an expiry that counts from later.
    fileprivate func living(from now: Timestamp, insteadOf then: Timestamp) -> Publication {
        guard let details, let end = details.expiresAt else { return self }
        return Publication(
            topic: topic,
            payload: payload,
            kind: kind,
            dropClass: dropClass,
            sender: sender,
            qos: qos,
            retain: retain,
            details: PublicationDetails(
                expiresAt: end.advanced(by: .milliseconds(now.rawValue - then.rawValue)),
                payloadIsUTF8: details.payloadIsUTF8,
                contentType: details.contentType,
                responseTopic: details.responseTopic,
                correlationData: details.correlationData,
                userProperties: details.userProperties
            )
        )
    }
}
