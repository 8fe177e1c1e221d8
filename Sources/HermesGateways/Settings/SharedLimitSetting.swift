// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The three settings of a limit that owners share (``SharedLimit``): the total, the share of one account, and the
/// share of one address.
struct SharedLimitSetting: Sendable {
    private let total: Setting<Int>
    private let perAccount: Setting<Int>
    private let perAddress: Setting<Int>

    var descriptors: [SettingDescriptor] { [total.descriptor, perAccount.descriptor, perAddress.descriptor] }

    func value(in values: SettingValues) throws(SettingsError) -> SharedLimit {
        SharedLimit(
            try values.value(of: total),
            perAccount: try values.value(of: perAccount),
            perAddress: try values.value(of: perAddress)
        )
    }

    private typealias Make = (_ key: String, _ value: Int, _ range: ClosedRange<Int>, _ summary: String) -> Setting<Int>

    private init(_ key: String, _ limit: SharedLimit, in range: ClosedRange<Int>, _ summary: String, _ make: Make) {
        total = make(
            key,
            limit.total,
            range,
            "\(summary) An account or address may add to its share only if its new share is not larger than the part "
                + "of the total that was free before the addition. All addresses without an account together may use "
                + "half."
        )
        perAccount = make("\(key)PerAccount", limit.perAccount, range, "The share of \(key) that one account may have.")
        perAddress = make(
            "\(key)PerAddress",
            limit.perAddress,
            range,
            "The share of \(key) that one address without an account may have. An IPv6 /64 network counts as one "
                + "address."
        )
    }

    /// Creates the settings of a limit on a number.
    static func counted(_ key: String, _ limit: SharedLimit, from low: Int, _ summary: String) -> Self {
        Self(key, limit, in: low...1_000_000_000, summary) { Setting.number($0, default: $1, in: $2, $3) }
    }

    /// Creates the settings of a limit on a number of bytes.
    static func measured(_ key: String, _ limit: SharedLimit, from low: Int, _ summary: String) -> Self {
        Self(key, limit, in: low...(1 << 40), summary) { Setting.byteCount($0, default: $1, in: $2, $3) }
    }
}

extension SettingField {
    private init(
        _ property: any WritableKeyPath<Group, SharedLimit> & Sendable,
        limit make: (_ limit: SharedLimit) -> SharedLimitSetting
    ) {
        let setting = make(Group()[keyPath: property as WritableKeyPath<Group, SharedLimit>])
        self.init(property, setting.descriptors) { (values: SettingValues) throws(SettingsError) in
            try setting.value(in: values)
        }
    }

    /// Creates a field for a limit on a number.
    static func counted(
        _ property: any WritableKeyPath<Group, SharedLimit> & Sendable,
        _ key: String,
        from low: Int = 1,
        _ summary: String
    ) -> Self {
        Self(property, limit: { limit in .counted(key, limit, from: low, summary) })
    }

    /// Creates a field for a limit on a number of bytes.
    static func measured(
        _ property: any WritableKeyPath<Group, SharedLimit> & Sendable,
        _ key: String,
        from low: Int,
        _ summary: String
    ) -> Self {
        Self(property, limit: { limit in .measured(key, limit, from: low, summary) })
    }
}
