// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// Costs: what the peer's requests cause is taken off the budgets of its connection, account and address. Over a budget the
/// connection is not read from until it is paid for; one that goes on like that for ever is closed.
extension Connection {
    /// What is settled with account and address at once: a lock for so many units.
    private static let settlingStep = 64
    /// How many seconds' worth a connection may owe: no request keeps it waiting for longer.
    private static let maxDebt = 10
    /// The longest pause for what others of the same account or address have caused.
    private static let maxSharedPause = Duration.seconds(5)
    /// The longest pause without another look.
    private static let maxPause = Duration.seconds(10)
    /// Pauses farther apart than this have nothing to do with each other.
    private static let respite = Duration.seconds(30)

    /// A request has caused this beside what every frame costs.
    package func charge(_ cost: RequestCost) {
        let units = cost.units
        guard units > 0, phase == .open else { return }
        guard cost.isOfConnection else {
            unsettled &+= units
            return settleIfDue()
        }
        pay(units)
        let rate = listener.limits.requestsPerSecond
        if !bucket.hasToken(rate: rate, burst: rate, now: loop.uptime) { throttle(for: bucket.delay(rate: rate)) }
    }

    /// Takes units off the budgets; of a frame, before it is looked at.
    func pay(_ units: Int) {
        bucket.take(units, debt: Self.maxDebt &* listener.limits.requestsPerSecond)
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
        if wait > .zero { throttle(for: min(wait, Self.maxSharedPause)) }
    }

    /// Over a budget: nothing is read for so long.
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
