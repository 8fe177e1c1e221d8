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

    private static func counted(_ key: String, _ limit: SharedLimit, from low: Int = 1, _ summary: String) -> Self {
        Self(key, limit, in: low...1_000_000_000, summary) { Setting.number($0, default: $1, in: $2, $3) }
    }

    private static func measured(_ key: String, _ limit: SharedLimit, from low: Int, _ summary: String) -> Self {
        Self(key, limit, in: low...(1 << 40), summary) { Setting.byteCount($0, default: $1, in: $2, $3) }
    }

    private static let defaults = MQTTSettings()

    static let sessions = counted(
        "mqtt.sessions.max",
        defaults.keptSessions,
        "The largest number of kept sessions of all clients. A client that needs a further session is refused."
    )
    static let subscriptions = counted(
        "mqtt.sessions.maxSubscriptions",
        defaults.keptSubscriptions,
        "The largest number of subscriptions of all kept sessions. Further subscriptions are refused. A filter takes "
            + "384 bytes, plus twice its length, plus 64 bytes for each level. Each KiB of this memory, or part of a "
            + "KiB, counts as one subscription. A shared filter counts as 39 more subscriptions."
    )
    static let messages = counted(
        "mqtt.sessions.maxQueuedMessages",
        defaults.keptMessages,
        "The largest number of publications that wait in the queues of all kept sessions together. Further "
            + "publications are dropped."
    )
    static let bytes = measured(
        "mqtt.sessions.maxQueuedBytes",
        defaults.keptBytes,
        from: 65_536,
        "The largest total size of the publications that wait in the queues of all kept sessions together. Further "
            + "publications are dropped."
    )
    static let sharedGroups = counted(
        "mqtt.maxSharedGroups",
        defaults.sharedGroups,
        """
        The largest number of groups of shared subscriptions with connected members. A group counts once for each \
        account or address that has members in it. The limits on members are 16 times the limits on groups. Further \
        groups and members are refused.
        """
    )
    static let retainedMessages = counted(
        "mqtt.retained.maxMessages",
        defaults.retainedMessages,
        from: 0,
        "The largest number of retained publications. A further publication over MQTT 5 with QoS 1 or 2 is refused. "
            + "Other further publications are delivered without being retained."
    )
    static let retainedBytes = measured(
        "mqtt.retained.maxBytes",
        defaults.retainedBytes,
        from: 0,
        "The largest memory of all retained publications together. A publication takes its payload, topic and "
            + "properties, plus 352 bytes, plus 64 bytes for each level of the topic, plus 160 bytes if it expires."
    )

    static let ofSessions = [sessions, subscriptions, messages, bytes]
    static let ofRetained = [retainedMessages, retainedBytes]
}
