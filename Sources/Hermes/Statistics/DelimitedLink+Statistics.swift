// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The link's counts, and the schedule of their uploads.
struct LinkStatistics: Sendable {
    var counter = DeliveryCounter()
    var clock = ClockOffset()
    /// The time between two uploads; nil if there are no uploads.
    let interval: Duration?
    let appVersion: String
    private(set) var uploadAt: NIODeadline?

    /// The shortest delay of the first upload after a login, unless the interval is shorter. The delay keeps uploads
    /// from adding to a storm of logins.
    private static let afterLogin = Duration.seconds(60)

    init(interval: Duration?, appVersion: String) {
        self.interval = interval
        self.appVersion = appVersion
    }

    mutating func becameLive(now: NIODeadline) {
        guard let interval else { return }
        uploadAt = now + TimeAmount(min(interval, Self.afterLogin) * Double.random(in: 1...2))
    }

    mutating func lost() {
        uploadAt = nil
        counter.uploadFailed()
    }

    /// Returns the counts to upload; nil if it is too early for an upload, or if there is nothing to upload.
    mutating func deadlineReached(now: NIODeadline) -> Hermes_V1_Statistics? {
        guard let interval, let at = uploadAt, at <= now else { return nil }
        uploadAt = now + TimeAmount(interval)
        return counter.upload(appVersion: appVersion)
    }

    mutating func answered(_ result: Hermes_V1_Result) {
        guard result.hasError else { return counter.uploadEnded() }
        // After a permanent refusal, the same counts would be refused again, so they are dropped.
        if OutboxQueue.isTemporary(HermesClientError(result.error)) {
            counter.uploadFailed()
        } else {
            counter.uploadEnded()
        }
    }

    /// Returns the delivery time of an entry with this time stamp, in milliseconds; nil if it is unknown.
    func latency(serverTime: Int64, date: Int64) -> Int64? {
        guard let offset = clock.milliseconds, serverTime > 0 else { return nil }
        return max(0, date &+ offset &- serverTime)
    }
}

// MARK: - The network
extension DelimitedLink {
    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath) {
        statistics.counter.ended(end, in: network.kind, date: WallClock.milliseconds())
    }

    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat) {
        statistics.counter.entered(network.kind)
        statistics.counter.learned(heartbeat, date: WallClock.milliseconds())
    }
}
