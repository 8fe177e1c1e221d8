// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct RoomTests {
    @Test(arguments: ["lobby", "a", "A-Z_0.9", String(repeating: "x", count: 64)])
    func `good names`(text: String) {
        #expect(RoomName(text)?.rawValue == text)
    }

    @Test(arguments: ["", "a b", "a/b", "ä", "#", "+", "a\n", "\u{0}", String(repeating: "x", count: 65)])
    func `bad names`(text: String) {
        #expect(RoomName(text) == nil)
    }
}
