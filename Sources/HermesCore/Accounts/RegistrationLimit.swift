// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Limits how many accounts strangers may register, per address and in total. Each budget is the number of
/// registrations that are allowed in one hour. A budget can be used up at once, and refills at an even rate. Does no
/// I/O; the caller passes the time.
///
/// A registration is charged when it begins, so that parallel registrations gain nothing. The charge is returned if no
/// account is created.
package struct RegistrationLimit: Sendable {
    package struct Limits: Sendable, Hashable {
        /// The largest number of accounts per hour from one address; 0 for no limit.
        package var perAddress = 60
        /// The largest number of accounts per hour in total; 0 for no limit.
        package var inTotal = 1000

        package init() {}

        package init(perAddress: Int, inTotal: Int) {
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

    /// Charges a registration, unless it must wait.
    ///
    /// - Parameters:
    ///   - address: the key from ``NetworkAddress/key(of:)``; nil for a local caller, to which only the total limit
    ///     applies.
    ///   - now: the uptime.
    /// - Returns: the time until a registration is allowed again; nil if this registration is allowed.
    package mutating func begin(address: String?, now: Duration) -> Duration? {
        if limits.inTotal > 0, let delay = total.wait(for: 0, now: now) { return delay }
        if limits.perAddress > 0, let address, let delay = addresses.wait(for: address, now: now) { return delay }
        add(address: address, now: now)
        return nil
    }

    /// Charges a registration on this node or on another node.
    package mutating func add(address: String?, now: Duration) {
        if limits.inTotal > 0 { total.charge(0, now: now) }
        if limits.perAddress > 0, let address { addresses.charge(address, now: now) }
    }

    /// Gives back the charge of a registration that created no account.
    package mutating func takeBack(address: String?) {
        if limits.inTotal > 0 { total.refund(0) }
        if limits.perAddress > 0, let address { addresses.refund(address) }
    }
}

extension RegistrationLimit.Limits: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .number(
            \.perAddress,
            "limits.registrationsPerAddress",
            in: 0...1_000_000,
            "The largest number of accounts per hour that clients of one IP address may create without an invitation. "
                + "0 means no limit. An IPv6 /64 network counts as one address."
        ),
        .number(
            \.inTotal,
            "limits.registrationsPerHour",
            in: 0...10_000_000,
            "The largest number of accounts per hour that all clients together may create without an invitation. 0 "
                + "means no limit."
        ),
    ]
}
