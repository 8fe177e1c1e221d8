// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct DeviceIDTests {
    @Test func `no client can have the id of back ends, but a store can`() {
        let text = DeviceID.backEnd.rawValue
        #expect(DeviceID(text) == nil)
        #expect(DeviceID(stored: text) == .backEnd)
        #expect(DeviceID(stored: "phone") == DeviceID("phone"))
        #expect(DeviceID(stored: "two words") == nil)
    }
}
