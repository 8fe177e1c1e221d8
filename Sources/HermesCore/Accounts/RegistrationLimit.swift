// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How many accounts strangers may make: from one address and in total, each an hour's number at once and then evenly. Pure; the
/// time is passed in.
///
/// A registration is charged at its beginning, so that many at once gain nothing, and taken back if no account comes of it.
package struct RegistrationLimit: Sendable {
    package struct Limits: Sendable, Hashable {
        /// Accounts an hour from one address; 0: no limit.
        package var perAddress: Int
        /// Accounts an hour from all together; 0: no limit.
        package var inTotal: Int

        package init(perAddress: Int = 60, inTotal: Int = 1000) {
            self.perAddress = max(0, perAddress)
            self.inTotal = max(0, inTotal)
        }
    }

    private static let period = Duration.seconds(3600)

    private let limits: Limits
    private var addresses: FailureTable<String>
    private var total: FailureTable<Int>

    package init(limits: Limits = Limits()) {
        self.limits = limits
        addresses = FailureTable(capacity: Double(max(1, limits.perAddress)), per: Self.period, maxEntries: 65_536)
        total = FailureTable(capacity: Double(max(1, limits.inTotal)), per: Self.period, maxEntries: 1)
    }

    /// - Parameters:
    ///   - address: as ``NetworkAddress/key(of:)`` made it; nil: a local caller, whom only the total concerns.
    ///   - now: the uptime.
    /// - Returns: how long until the next makes sense; nil: go on.
    package mutating func begin(address: String?, now: Duration) -> Duration? {
        if limits.inTotal > 0, let delay = total.wait(for: 0, now: now) { return delay }
        if limits.perAddress > 0, let address, let delay = addresses.wait(for: address, now: now) { return delay }
        if limits.inTotal > 0 { total.charge(0, now: now) }
        if limits.perAddress > 0, let address { addresses.charge(address, now: now) }
        return nil
    }

    /// No account came of it.
    package mutating func takeBack(address: String?) {
        if limits.inTotal > 0 { total.refund(0) }
        if limits.perAddress > 0, let address { addresses.refund(address) }
    }
}
