// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Delays logins after failures, per account and per address. Pure; the time is passed in.
///
/// An attempt counts against the account from its beginning, so that many at once gain nothing; success takes it back. Against
/// the address only failures count, because many people may share one. Over the free failures each further one doubles
/// the delay. An account forgets after a quiet time; an address wins back its free failures evenly over a minute. The
/// tables are bounded: when one is full, what is oldest is forgotten.
package struct LoginThrottle: Sendable {
    package struct Limits: Sendable, Hashable {
        /// Failures of one account before delays begin.
        package var failuresPerAccount: Int
        /// The longest delay of an account: bounded, so that nobody can lock others out for long.
        package var maxAccountDelay: Duration
        /// An account's failures are forgotten after a time without new ones.
        package var accountMemory: Duration
        /// Failures of one address per minute before delays begin.
        package var failuresPerAddress: Int
        /// The longest delay of an address.
        package var maxAddressDelay: Duration
        /// How many accounts and how many addresses are remembered.
        package var maxEntries: Int

        package init(
            failuresPerAccount: Int = 10,
            maxAccountDelay: Duration = .seconds(60),
            accountMemory: Duration = .seconds(900),
            failuresPerAddress: Int = 20,
            maxAddressDelay: Duration = .seconds(300),
            maxEntries: Int = 65_536
        ) {
            self.failuresPerAccount = max(1, failuresPerAccount)
            self.maxAccountDelay = maxAccountDelay
            self.accountMemory = accountMemory
            self.failuresPerAddress = max(1, failuresPerAddress)
            self.maxAddressDelay = maxAddressDelay
            self.maxEntries = max(2, maxEntries)
        }
    }

    private struct Entry: Sendable {
        var failures: Double
        var changedAt: Duration
        var notBefore: Duration
    }

    package let limits: Limits
    private var accounts: [String: Entry] = [:]
    private var addresses: [String: Entry] = [:]

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// An attempt begins.
    ///
    /// - Parameters:
    ///   - account: the key of the nick name; nil if the login is by token.
    ///   - address: as ``addressKey(_:)`` made it; nil for local callers, who are not delayed by address.
    ///   - now: the uptime.
    /// - Returns: how long the caller must wait before it tries again; nil: it may go on.
    package mutating func begin(account: String?, address: String?, now: Duration) -> Duration? {
        var delay = Duration.zero
        if let account, let entry = accounts[account] { delay = max(delay, entry.notBefore - now) }
        if let address, let entry = addresses[address] { delay = max(delay, entry.notBefore - now) }
        guard delay <= .zero else { return delay }
        if let account { addAccountFailure(account, now: now) }
        return nil
    }

    /// The attempt succeeded: the account's failures are forgotten.
    package mutating func succeeded(account: String) { accounts[account] = nil }

    /// The attempt failed: that counts against the address, too.
    package mutating func failed(address: String?, now: Duration) {
        if let address { addAddressFailure(address, now: now) }
    }

    /// The attempt came to no decision (overload, storage): it is taken back.
    package mutating func undecided(account: String) {
        guard var entry = accounts[account] else { return }
        entry.failures -= 1
        entry.notBefore = entry.changedAt
        accounts[account] = entry.failures <= 0 ? nil : entry
    }

    /// What an address counts as: an IPv6 network of 64 bits is one, for it belongs to one customer.
    package static func addressKey(_ address: String) -> String {
        guard address.utf8.count <= 64 else { return String(address.prefix(64)) }
        guard address.contains(":") else { return address }
        let bare = address.prefix { $0 != "%" }
        if bare.contains("."), let mapped = bare.split(separator: ":").last { return String(mapped) }
        let halves = bare.split(separator: ":", omittingEmptySubsequences: false)
        var groups: [String] = []
        for group in halves {
            if group.isEmpty && !groups.isEmpty { break }
            groups.append(String(group.drop { $0 == "0" }).lowercased())
            if groups.count == 4 { break }
        }
        while groups.count < 4 { groups.append("") }
        return groups.joined(separator: ":") + "::/64"
    }

    private mutating func addAccountFailure(_ account: String, now: Duration) {
        var entry = accounts[account] ?? Entry(failures: 0, changedAt: now, notBefore: now)
        if now - entry.changedAt > limits.accountMemory { entry.failures = 0 }
        entry.failures += 1
        entry.changedAt = now
        let excess = entry.failures - Double(limits.failuresPerAccount)
        entry.notBefore = now + Self.delay(excess: excess, atMost: limits.maxAccountDelay)
        accounts[account] = entry
        Self.bound(&accounts, to: limits.maxEntries)
    }

    private mutating func addAddressFailure(_ address: String, now: Duration) {
        var entry = addresses[address] ?? Entry(failures: 0, changedAt: now, notBefore: now)
        let perSecond = Double(limits.failuresPerAddress) / 60
        entry.failures = max(0, entry.failures - (now - entry.changedAt) / .seconds(1) * perSecond) + 1
        entry.changedAt = now
        let excess = entry.failures - Double(limits.failuresPerAddress)
        entry.notBefore = now + Self.delay(excess: excess, atMost: limits.maxAddressDelay)
        addresses[address] = entry
        Self.bound(&addresses, to: limits.maxEntries)
    }

    /// One second for the first failure beyond the free ones, twice as much for each further one.
    private static func delay(excess: Double, atMost limit: Duration) -> Duration {
        guard excess > 0 else { return .zero }
        let exponent = Int(min(excess.rounded(.up), 30)) - 1
        return min(limit, .seconds(1 << exponent))
    }

    /// Forgets the older half where there are too many.
    private static func bound(_ entries: inout [String: Entry], to limit: Int) {
        guard entries.count > limit else { return }
        let times = entries.values.map(\.changedAt).sorted()
        let median = times[times.count / 2]
        entries = entries.filter { $0.value.changedAt > median }
    }
}
