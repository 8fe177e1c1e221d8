// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits guesses at passwords: per account and address, per account, and per address. Does no I/O; the caller passes
/// the time.
///
/// An attempt is charged when it begins, so that parallel attempts gain nothing. If the attempt succeeds, the charge is
/// returned. Each budget is a bucket that fills with failures and empties evenly. An attempt uses the first of these
/// budgets that applies to it:
///
/// 1. for a device of the account: the budget of this device, while there is room;
/// 2. at an address from which the account has already logged in: the budget of this account at this address. Nobody at
///    another address can use this budget up, so attempts from elsewhere never shut out an owner at a known address;
/// 3. for any other client (a stranger): three budgets, each of which must have room. The first is for this account at
///   this address, the second for this account and all strangers, and the third for this address and all accounts.
///
/// A change of the password has a budget of its own (``Attempt/passwordChange(of:)``).
///
/// The tables are bounded. A full table drops the entries with the fewest failures, so that the many entries of an
/// attacker who floods the table are dropped first.
package struct LoginThrottle: Sendable {
    package struct Limits: Sendable, Hashable {
        /// The limit on a burst of failures for one account, separately for each address and for each device of the
        /// account.
        package var failuresPerSource = 20
        /// The limit on a burst of failures for one account, for all strangers together.
        package var failuresOfStrangers = 100
        /// The time in which the two budgets above regenerate completely, at an even rate.
        package var accountPeriod = Duration.seconds(3600)
        /// The limit on a burst of failures from one address, for all accounts together. This budget regenerates
        /// completely in a minute, at an even rate.
        package var failuresPerAddress = 20
        /// The largest number of entries that each table may have.
        package var maxEntries = 65_536

        package init() {}

        /// Creates limits. A parameter that is nil leaves its limit at the default.
        package init(
            failuresPerSource: Int? = nil,
            failuresOfStrangers: Int? = nil,
            accountPeriod: Duration? = nil,
            failuresPerAddress: Int? = nil,
            maxEntries: Int? = nil
        ) {
            if let failuresPerSource { self.failuresPerSource = max(1, failuresPerSource) }
            if let failuresOfStrangers { self.failuresOfStrangers = max(1, failuresOfStrangers) }
            if let accountPeriod { self.accountPeriod = max(.seconds(1), accountPeriod) }
            if let failuresPerAddress { self.failuresPerAddress = max(1, failuresPerAddress) }
            if let maxEntries { self.maxEntries = max(2, maxEntries) }
        }
    }

    /// The properties of a login attempt that decide which limits apply.
    package struct Attempt: Sendable, Hashable {
        /// The key of the nick name; nil if no account is named.
        package var account: String?
        /// The key from ``NetworkAddress/key(of:)``; nil for local callers, which have no limit per address.
        package var address: String?
        /// The client's device if the account has it; otherwise nil.
        package var device: DeviceID?
        /// Whether the account has already logged in from this address.
        package var isAddressKnown: Bool

        package init(
            account: String? = nil,
            address: String?,
            device: DeviceID? = nil,
            isAddressKnown: Bool = false
        ) {
            self.account = account
            self.address = address
            self.device = device
            self.isAddressKnown = isAddressKnown
        }

        /// Returns an attempt to change an account's password over a connection that is logged in to the account. No
        /// login uses the budget of these attempts.
        package static func passwordChange(of account: String) -> Attempt {
            Attempt(account: account, address: passwordChangeAddress, isAddressKnown: true)
        }

        /// Stands for the address of all changes of passwords; no real address begins with a slash.
        private static let passwordChangeAddress = "/passwordChange"
    }

    /// The charge for an attempt. ``LoginThrottle/takeBack(_:)`` returns it to the budgets.
    package struct Charge: Sendable, Hashable {
        fileprivate enum Payer: Sendable, Hashable {
            case device(String, DeviceID)
            case known(String, String)
            case stranger(account: String?, address: String?)
        }

        fileprivate let payer: Payer
    }

    package enum Decision: Sendable, Hashable {
        case go(Charge)
        /// The attempt must wait; the value is the time until an attempt is allowed again.
        case wait(Duration)
    }

    private struct Source: Sendable, Hashable {
        let account: String
        let address: String
    }

    private struct OwnDevice: Sendable, Hashable {
        let account: String
        let device: DeviceID
    }

    package let limits: Limits
    private var devices: FailureTable<OwnDevice>
    private var known: FailureTable<Source>
    private var sources: FailureTable<Source>
    private var strangers: FailureTable<String>
    private var addresses: FailureTable<String>

    package init(limits: Limits = Limits()) {
        self.limits = limits
        let perSource = Double(limits.failuresPerSource)
        let period = limits.accountPeriod
        devices = FailureTable(capacity: perSource, per: period, maxEntries: limits.maxEntries)
        known = FailureTable(capacity: perSource, per: period, maxEntries: limits.maxEntries)
        sources = FailureTable(capacity: perSource, per: period, maxEntries: limits.maxEntries)
        strangers = FailureTable(
            capacity: Double(limits.failuresOfStrangers),
            per: period,
            maxEntries: limits.maxEntries
        )
        addresses = FailureTable(
            capacity: Double(limits.failuresPerAddress),
            per: .seconds(60),
            maxEntries: limits.maxEntries
        )
    }

    /// Charges a new attempt, unless it must wait.
    ///
    /// - Parameter now: the uptime.
    package mutating func begin(_ attempt: Attempt, now: Duration) -> Decision {
        let address = attempt.address ?? Self.localAddress
        if let account = attempt.account, let device = attempt.device {
            let own = OwnDevice(account: account, device: device)
            if devices.wait(for: own, now: now) == nil {
                return .go(charge(.device(account, device), now: now))
            }
        }
        if let account = attempt.account, attempt.isAddressKnown {
            let source = Source(account: account, address: address)
            if let delay = known.wait(for: source, now: now) { return .wait(delay) }
            return .go(charge(.known(account, address), now: now))
        }
        var delay: Duration?
        func note(_ other: Duration?) { if let other { delay = max(delay ?? .zero, other) } }
        if let account = attempt.account {
            note(sources.wait(for: Source(account: account, address: address), now: now))
            note(strangers.wait(for: account, now: now))
        }
        if let address = attempt.address { note(addresses.wait(for: address, now: now)) }
        if let delay { return .wait(delay) }
        return .go(charge(.stranger(account: attempt.account, address: attempt.address), now: now))
    }

    /// Charges an attempt that failed on another node. A full bucket stays full, even if several nodes have each let a
    /// burst through.
    package mutating func add(_ charge: Charge, now: Duration) { _ = self.charge(charge.payer, now: now) }

    private mutating func charge(_ payer: Charge.Payer, now: Duration) -> Charge {
        switch payer {
        case .device(let account, let device):
            devices.charge(OwnDevice(account: account, device: device), now: now)
        case .known(let account, let address):
            known.charge(Source(account: account, address: address), now: now)
        case .stranger(let account, let address):
            if let account {
                sources.charge(Source(account: account, address: address ?? Self.localAddress), now: now)
                strangers.charge(account, now: now)
            }
            if let address { addresses.charge(address, now: now) }
        }
        return Charge(payer: payer)
    }

    /// Gives back the charge of an attempt that succeeded, or that stayed undecided, for example because of overload or
    /// a storage failure.
    package mutating func takeBack(_ charge: Charge) {
        switch charge.payer {
        case .device(let account, let device):
            devices.refund(OwnDevice(account: account, device: device))
        case .known(let account, let address):
            known.refund(Source(account: account, address: address))
        case .stranger(let account, let address):
            if let account {
                sources.refund(Source(account: account, address: address ?? Self.localAddress))
                strangers.refund(account)
            }
            if let address { addresses.refund(address) }
        }
    }

    /// The address of local callers; no real address is empty.
    private static let localAddress = ""
}

/// A bounded table of buckets, one for each key. Each charge adds 1 to a bucket, and the bucket empties with time.
struct FailureTable<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        var level: Double
        var changedAt: Duration
    }

    private let capacity: Double
    private let perSecond: Double
    private let maxEntries: Int
    private var entries: [Key: Entry] = [:]

    /// - Parameters:
    ///   - capacity: the number of charges that fill a bucket.
    ///   - period: the time in which a full bucket empties, at an even rate.
    ///   - maxEntries: the largest number of buckets that the table may have.
    init(capacity: Double, per period: Duration, maxEntries: Int) {
        self.capacity = capacity
        perSecond = capacity / (period / .seconds(1))
        self.maxEntries = maxEntries
    }

    var count: Int { entries.count }

    /// Returns the time until another charge fits into a bucket; nil if it fits now.
    func wait(for key: Key, now: Duration) -> Duration? {
        guard let entry = entries[key] else { return nil }
        let excess = level(of: entry, now: now) + 1 - capacity
        // Rounding must not cause a delay for a millionth of a failure.
        return excess <= 1e-6 ? nil : .seconds(excess / perSecond)
    }

    /// Adds a charge to a bucket. A full bucket stays full.
    mutating func charge(_ key: Key, now: Duration) {
        let before = entries[key].map { level(of: $0, now: now) } ?? 0
        entries[key] = Entry(level: max(before, min(before + 1, capacity)), changedAt: now)
        if entries.count > maxEntries { shrink(now: now) }
    }

    mutating func refund(_ key: Key) {
        guard var entry = entries[key] else { return }
        entry.level -= 1
        entries[key] = entry.level <= 1e-6 ? nil : entry
    }

    private func level(of entry: Entry, now: Duration) -> Double {
        max(0, entry.level - (now - entry.changedAt) / .seconds(1) * perSecond)
    }

    /// Drops empty buckets, and then the buckets with the fewest failures, so that at most half of ``maxEntries``
    /// remain.
    private mutating func shrink(now: Duration) {
        let kept = entries.map { (key: $0.key, entry: $0.value, level: level(of: $0.value, now: now)) }
            .filter { $0.level > 0 }
            .sorted { $0.level > $1.level }
            .prefix(maxEntries / 2)
        entries = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.entry) })
    }
}

extension LoginThrottle.Limits: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .number(
            \.failuresPerAddress,
            "limits.loginFailuresPerAddress",
            in: 1...1_000_000,
            "The largest number of failed logins per minute from one IP address. Beyond this number, further logins "
                + "from this address are delayed, unless the account has used the device or the address before."
        )
    ]
}
