// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The part that MQTT 3.1.1 subscribers share.
    static var mqttV311: Self { Self(rawValue: 2) }
    /// The part that MQTT 5 subscribers share.
    static var mqttV5: Self { Self(rawValue: 3) }
    /// The part of a QoS 1 or 2 message that MQTT 3.1.1 subscribers share: everything except the header's flags and the
    /// packet identifier.
    static var mqttV311Acknowledged: Self { Self(rawValue: 4) }
    /// The same for MQTT 5.
    static var mqttV5Acknowledged: Self { Self(rawValue: 5) }
}
