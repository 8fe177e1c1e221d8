// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The supported versions of MQTT; the raw value is CONNECT's protocol level.
public enum MQTTVersion: UInt8, Hashable, Sendable, CaseIterable {
    /// MQTT 3.1.1 [MQTT-3.1.2-2].
    case v311 = 4
    /// MQTT 5.0 [MQTT-3.1.2-2].
    case v5 = 5
}

/// The quality of service.
public enum MQTTQoS: UInt8, Hashable, Sendable, Comparable, CaseIterable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    /// Compares the levels; exactly once is the highest.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
