// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides what may be under way to services that clients name (Web Push). Pure; owner: ``PushHandOff``.
///
/// Such a service may belong to a stranger who never answers. So a service that has not delivered yet gets few sends at
/// once, all such services together half of them, an account few, and a service that gives no answer is paused.
struct OriginShares: Sendable {
    struct Limits: Sendable, Hashable {
        /// The number of devices in all.
        var total = 1_024
        /// To services that have not delivered, together.
        var unproven = 512
        /// To one service that has delivered.
        var perOrigin = 256
        /// To one that has not.
        var perUnproven = 16
        /// Of one account.
        var perUser = 16
        /// The number of services remembered.
        var origins = 4_096
    }

    private struct Origin: Sendable {
        var sending = 0
        var isProven = false
        var failures = 0
        var pausedUntil = Duration.zero
    }

    private let limits: Limits
    private let backoff: Backoff
    private var origins: [String: Origin] = [:]
    private var users: [UserID: Int] = [:]
    private(set) var total = 0
    /// Counted when taken, by what the service was then.
    private var unproven = 0

    init(limits: Limits = Limits(), backoff: Backoff = Backoff(base: .seconds(2), limit: .seconds(600))) {
        self.limits = limits
        self.backoff = backoff
    }

    /// A taken place; ``release(_:)`` must follow.
    struct Place: Sendable {
        let origin: String
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
        let known = origins[name]
        var origin = known ?? Origin()
        if origin.pausedUntil > now { return .paused(origin.pausedUntil) }
        guard total < limits.total, users[user, default: 0] < limits.perUser,
            origin.sending < (origin.isProven ? limits.perOrigin : limits.perUnproven),
            origin.isProven || unproven < limits.unproven,
            known != nil || hasRoomForOrigin()
        else { return .full }
        origin.sending += 1
        origins[name] = origin
        users[user, default: 0] += 1
        total += 1
        if !origin.isProven { unproven += 1 }
        return .taken(Place(origin: name, user: user, isProven: origin.isProven))
    }

    /// Makes room by forgetting a service to which nothing is under way: at worst it is tried a little earlier.
    private mutating func hasRoomForOrigin() -> Bool {
        guard origins.count >= limits.origins else { return true }
        let idle =
            origins.firstIndex { $0.value.sending == 0 && !$0.value.isProven }
            ?? origins.firstIndex { $0.value.sending == 0 }
        guard let idle else { return false }
        origins.remove(at: idle)
        return true
    }

    mutating func release(_ place: Place) {
        origins[place.origin]?.sending -= 1
        let left = users[place.user, default: 1] - 1
        users[place.user] = left > 0 ? left : nil
        total -= 1
        if !place.isProven { unproven -= 1 }
    }

    /// A service has delivered.
    mutating func delivered(_ name: String) {
        origins[name]?.isProven = true
        origins[name]?.failures = 0
        origins[name]?.pausedUntil = .zero
    }

    /// A service gave no answer. Failures during a pause began before it and do not lengthen it.
    mutating func failed(_ name: String, now: Duration, random: Double = .random(in: 0...1)) {
        guard var origin = origins[name], origin.pausedUntil <= now else { return }
        origin.isProven = false
        origin.failures += 1
        origin.pausedUntil = now + backoff.delay(failures: origin.failures, random: random)
        origins[name] = origin
    }
}
