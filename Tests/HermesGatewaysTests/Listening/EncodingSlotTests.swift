// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@testable import HermesGateways

@Suite struct EncodingSlotTests {
    @Test func `each encoding has a slot of its own`() {
        let slots: [EncodingSlot] = [
            .liveRoom, .liveRoomPlain, .delimited, .delimitedJSON, .mqttV311, .mqttV5, .mqttV311Acknowledged,
            .mqttV5Acknowledged, .qsiop, .impb,
        ]
        #expect(Set(slots).count == slots.count)
    }
}
