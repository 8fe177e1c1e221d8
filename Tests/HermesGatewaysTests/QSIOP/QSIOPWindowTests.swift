// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesGateways

@Suite struct QSIOPWindowTests {
    @Test func `the cursor follows the oldest that waits`() {
        var window = QSIOPWindow()
        for seq in 1...4 as ClosedRange<UInt64> { window.pushed(seq, id: "m\(seq)") }
        #expect(window.acknowledged("m2") == .waiting)
        #expect(window.acknowledged("m4") == .waiting)
        #expect(window.acknowledged("m1") == .advanced(2))
        #expect(window.acknowledged("m3") == .advanced(4))
        #expect(window.count == 0)
    }

    @Test func `what is not pushed needs no acknowledgement`() {
        var window = QSIOPWindow()
        #expect(window.skipped(1) == 1)
        window.pushed(2, id: "m2")
        #expect(window.skipped(9) == nil)
        #expect(window.acknowledged("m2") == .advanced(9))
        #expect(window.count == 0)
    }

    @Test func `only what waits can be acknowledged`() {
        var window = QSIOPWindow()
        #expect(window.acknowledged("m1") == .unknown)
        window.pushed(1, id: "m1")
        window.pushed(2, id: "m2")
        #expect(window.acknowledged("m2") == .waiting)
        #expect(window.acknowledged("m2") == .waiting)
        #expect(window.acknowledged("m1") == .advanced(2))
        #expect(window.acknowledged("m1") == .unknown)
    }
}
