// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The slot of the complete PUBLISH packet of QoS 0 that MQTT 3.1.1 subscribers share.
    static var mqttV311: Self { Self(rawValue: 2) }
    /// The slot of the complete PUBLISH packet of QoS 0 that MQTT 5 subscribers share.
    static var mqttV5: Self { Self(rawValue: 3) }
    /// The slot of a PUBLISH packet of QoS 1 or 2 for MQTT 3.1.1. Subscribers share everything except the header's
    /// flags and the packet identifier, which are set for each subscriber.
    static var mqttV311Acknowledged: Self { Self(rawValue: 4) }
    /// The slot of a PUBLISH packet of QoS 1 or 2 for MQTT 5, shared in the same way as ``mqttV311Acknowledged``.
    static var mqttV5Acknowledged: Self { Self(rawValue: 5) }
}
