// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// Costs: the cost of the peer's requests (``RequestCost``) is charged to the budgets of its connection, account and
/// address. When a budget is exceeded, the server stops reading from the connection until the budget has recovered. A
/// connection that exceeds a budget for too long is closed.
extension Connection {
    /// The number of units that are collected before they are charged to the account and the address, so that one
    /// lock is taken for many requests.
    private static let settlingStep = 64
    /// The largest amount that a connection may owe, in seconds of its request rate. It bounds the wait after a
    /// request.
    private static let maxDebt = 10
    /// The longest pause for the budgets of the account and the address, which other connections may have used up.
    private static let maxSharedPause = Duration.seconds(5)
    /// The longest pause before the budget is checked again.
    private static let maxPause = Duration.seconds(10)

    /// The address that pays for requests and memory.
    var budgetAddress: ConnectionCounter.Address {
        if let payer { return payer }
        let address = ConnectionCounter.Address(remoteAddress)
        payer = address
        return address
    }

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

    /// Charges for the inboxes and devices that a change reaches. For the sender and for one recipient, one inbox entry
    /// and one device are free.
    ///
    /// - Parameter bytes: the size of the content that is written to each device.
    func chargeReached(_ reach: ChangeReach, bytes: Int = 0) {
        chargeInTheEnd(.recipients(max(0, reach.entries - 2)))
        chargeInTheEnd(.devices(max(0, reach.devices - 2), bytes: bytes))
    }

    /// Charges for the devices that were notified of an ephemeral event. One device of each user is free.
    func chargeForEvent(toldTo devices: Int, of users: Int = 1, bytes: Int = 0) {
        chargeInTheEnd(.devices(max(0, devices - users), bytes: bytes))
    }

    /// Charges a cost that may become known only after the connection has ended. In that case, the connection's
    /// account and address pay. So a client that repeatedly connects and leaves also pays.
    func chargeInTheEnd(_ cost: RequestCost) {
        guard phase != .open else { return charge(cost) }
        unsettled &+= cost.units
        if unsettled > 0 { settle() }
    }

    /// Counts work that is not charged. Its only effect is that this connection's turn ends sooner.
    func worked(_ cost: RequestCost) { spent &+= cost.units }

    /// Charges units to the connection's budget at once. The budgets of its account and address are charged about
    /// every `settlingStep` units. A frame is charged before it is examined.
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
        if let backlog, backlog.throttle.isInSeries, bucket.holds(0.5, ofBurst: rate) {
            backlog.throttle.budgetRecovered()
        }
        guard let rates = listener.rates else { return }
        let now = loop.eventLoop.now.uptime
        var wait = Duration.zero
        switch budgetAddress {
        case .local, .unknown, .hidden: break
        case let address: wait = rates.charge(units, to: .address(address), now: now)
        }
        if let account { wait = max(wait, rates.charge(units, to: .account(account), now: now)) }
        if wait > .zero, phase == .open { throttle(for: min(wait, Self.maxSharedPause)) }
    }

    /// Stops reading for this time, or ends the connection if it has been throttled for too long.
    func throttle(for time: Duration) {
        if let length = ensureBacklog().throttle.budgetExceeded(now: loop.eventLoop.now) {
            if length > TimeAmount(listener.limits.throttled), phase == .open { return end(.rateLimited) }
        } else {
            listener.metrics.throttled()
        }
        let pause = min(max(time, .milliseconds(10)), Self.maxPause)
        slowDown(for: .nanoseconds(Int64(pause / .nanoseconds(1))))
    }
}
