// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// Costs: the cost of the peer's requests is charged to its connection, account and address. Over a budget the server
/// stops reading from the connection until the cost is paid; one that exceeds it permanently is closed.
extension Connection {
    /// The units that are settled with account and address at once, to take one lock for many requests.
    private static let settlingStep = 64
    /// The most seconds' worth that a connection may owe, which bounds the wait after a request.
    private static let maxDebt = 10
    /// The longest pause because of other connections of the account or address.
    private static let maxSharedPause = Duration.seconds(5)
    /// The longest pause without another check.
    private static let maxPause = Duration.seconds(10)
    /// The gap after which pauses no longer count as continuous.
    private static let respite = Duration.seconds(30)

    /// Charges a request's cost beyond that of its frame.
    package func charge(_ cost: RequestCost) {
        let units = cost.units
        guard units > 0, phase == .open else { return }
        guard cost.isOfConnection else {
            spent &+= units
            unsettled &+= units
            return settleIfDue()
        }
        pay(units)
        let rate = listener.limits.requestsPerSecond
        if !bucket.hasToken(rate: rate, burst: rate, now: loop.uptime) { throttle(for: bucket.delay(rate: rate)) }
    }

    /// Charges for bytes that were read from the store.
    package func chargeRead(_ bytes: Int) { chargeInTheEnd(.bytes(bytes)) }

    /// Charges for the reach of a change, beyond one entry and one device of the sender and of one recipient.
    ///
    /// - Parameter bytes: the size of the content that is written to each device.
    func chargeReached(_ reach: ChangeReach, bytes: Int = 0) {
        chargeInTheEnd(.recipients(max(0, reach.entries - 2)))
        chargeInTheEnd(.devices(max(0, reach.devices - 2), bytes: bytes))
    }

    /// Charges for an ephemeral event of which devices were told, beyond one of each user.
    func chargeForEvent(toldTo devices: Int, of users: Int = 1, bytes: Int = 0) {
        chargeInTheEnd(.devices(max(0, devices - users), bytes: bytes))
    }

    /// Charges for something that may become known after the connection has ended. Then its account and its address
    /// pay; otherwise a client that comes and goes would have it for nothing.
    func chargeInTheEnd(_ cost: RequestCost) {
        guard phase != .open else { return charge(cost) }
        unsettled &+= cost.units
        if unsettled > 0 { settle() }
    }

    /// Counts work that is not charged; others have their turn the sooner.
    func worked(_ cost: RequestCost) { spent &+= cost.units }

    /// Charges units; for a frame, before it is examined.
    func pay(_ units: Int) {
        bucket.take(units, debt: Self.maxDebt &* listener.limits.requestsPerSecond)
        spent &+= units
        unsettled &+= units
        settleIfDue()
    }

    private func settleIfDue() {
        if unsettled >= Self.settlingStep { settle() }
    }

    private func settle() {
        let units = unsettled
        unsettled = 0
        let rate = listener.limits.requestsPerSecond
        if throttledSince != nil, bucket.holds(0.5, ofBurst: rate) { throttledSince = nil }
        guard let rates = listener.rates else { return }
        let now = Duration.nanoseconds(Int64(clamping: loop.eventLoop.now.uptimeNanoseconds))
        var wait = Duration.zero
        switch budgetAddress {
        case .local, .unknown: break
        case let address: wait = rates.charge(units, to: .address(address), now: now)
        }
        if let account { wait = max(wait, rates.charge(units, to: .account(account), now: now)) }
        if wait > .zero, phase == .open { throttle(for: min(wait, Self.maxSharedPause)) }
    }

    /// Stops reading for this time.
    func throttle(for time: Duration) {
        let now = loop.uptime
        if let last = lastThrottledAt, now - last > Self.respite { throttledSince = nil }
        lastThrottledAt = now
        if throttledSince == nil { listener.metrics.throttled() }
        let since = throttledSince ?? now
        throttledSince = since
        if now - since > listener.limits.throttled, phase == .open { return end(.rateLimited) }
        let pause = min(max(time, .milliseconds(10)), Self.maxPause)
        slowDown(for: .nanoseconds(Int64(pause / .nanoseconds(1))))
    }
}
