// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits the number of sends that are under way to services that clients name (Web Push). A service is identified by
/// its host. Does no I/O. The owner is ``PushHandOff``.
///
/// Such a service may belong to a stranger who never answers. So a service that has not delivered yet gets few sends at
/// once. All services that have not delivered yet together get half of all sends. One account also gets few sends at
/// once. A service that gives no answer is paused. A service that delivers for a while and then stops answering can
/// hold many sends. So the last quarter of all sends is reserved for services with few sends under way.
struct HostShares: Sendable {
    struct Limits: Sendable, Hashable {
        /// The largest number of sends in total. The notifications of one device count as one send.
        var total = 1_024
        /// The largest number of sends in total to services that have not delivered.
        var unproven = 512
        /// When this many sends are under way in total (three quarters of ``total``), a service gets another send only
        /// if few sends to it are under way.
        var crowded: Int { total / 4 * 3 }
        /// When ``crowded`` is reached, a service that has not delivered gets another send only while fewer than this
        /// many sends to all such services are under way. The number is half of what ``crowded`` leaves of ``total``.
        var unprovenRest: Int { (total - crowded) / 2 }
        /// The largest number of sends to one service that has delivered.
        var perHost = 256
        /// The largest number of sends to one service that has not delivered.
        var perUnproven = 16
        /// The largest number of sends for one account.
        var perUser = 16
        /// The largest number of services that are remembered.
        var hosts = 4_096
    }

    private struct Host: Sendable {
        var sending = 0
        var isProven = false
        var failures = 0
        var pausedUntil = Duration.zero
    }

    private let limits: Limits
    private let backoff: Backoff
    private var hosts: [String: Host] = [:]
    private var users: [UserID: Int] = [:]
    private(set) var total = 0
    /// The number of places whose service had not delivered when the place was taken.
    private var unproven = 0

    init(limits: Limits = Limits(), backoff: Backoff = Backoff(base: .seconds(2), limit: .seconds(600))) {
        self.limits = limits
        self.backoff = backoff
    }

    /// A place: the right to one send. ``release(_:)`` must be called after the send.
    struct Place: Sendable {
        let host: String
        let user: UserID
        fileprivate let isProven: Bool
    }

    enum Verdict: Sendable {
        case taken(Place)
        /// There is no room.
        case full
        /// The service is paused until this time.
        case paused(Duration)
    }

    /// Takes a place for one device.
    mutating func take(_ name: String, of user: UserID, now: Duration) -> Verdict {
        let known = hosts[name]
        var host = known ?? Host()
        if host.pausedUntil > now { return .paused(host.pausedUntil) }
        guard total < limits.total, users[user, default: 0] < limits.perUser,
            host.sending < (host.isProven ? limits.perHost : limits.perUnproven),
            host.isProven || unproven < limits.unproven,
            isSpared(host), known != nil || hasRoomForHost()
        else { return .full }
        host.sending += 1
        hosts[name] = host
        users[user, default: 0] += 1
        total += 1
        if !host.isProven { unproven += 1 }
        return .taken(Place(host: name, user: user, isProven: host.isProven))
    }

    /// Whether a service may have one more place. Stricter limits apply when the number of taken places has reached
    /// ``Limits/crowded``.
    private func isSpared(_ host: Host) -> Bool {
        if total < limits.crowded { return true }
        return host.isProven ? host.sending < limits.perUnproven : unproven < limits.unprovenRest
    }

    /// Returns whether there is room for another service. If the table is full, forgets a service to which no sends are
    /// under way. At worst, a send to the forgotten service begins before the service's pause has ended.
    private mutating func hasRoomForHost() -> Bool {
        guard hosts.count >= limits.hosts else { return true }
        let idle =
            hosts.firstIndex { $0.value.sending == 0 && !$0.value.isProven }
            ?? hosts.firstIndex { $0.value.sending == 0 }
        guard let idle else { return false }
        hosts.remove(at: idle)
        return true
    }

    mutating func release(_ place: Place) {
        hosts[place.host]?.sending -= 1
        let left = users[place.user, default: 1] - 1
        users[place.user] = left > 0 ? left : nil
        total -= 1
        if !place.isProven { unproven -= 1 }
    }

    /// Records that a service has delivered.
    mutating func delivered(_ name: String) {
        hosts[name]?.isProven = true
        hosts[name]?.failures = 0
        hosts[name]?.pausedUntil = .zero
    }

    /// Records that a service gave no answer. A failure that is reported during a pause belongs to a send that began
    /// before the pause, so the failure does not lengthen the pause.
    mutating func failed(_ name: String, now: Duration, random: Double = .random(in: 0...1)) {
        guard var host = hosts[name], host.pausedUntil <= now else { return }
        host.isProven = false
        host.failures += 1
        host.pausedUntil = now + backoff.delay(failures: host.failures, random: random)
        hosts[name] = host
    }
}
