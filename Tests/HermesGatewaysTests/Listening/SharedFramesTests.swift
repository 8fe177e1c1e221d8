// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesGateways

struct SharedFramesTests {
    @Test func `counts bytes once for all who share them`() {
        var frames = SharedFrames()
        #expect(frames.add(1, bytes: 100) == 100)
        #expect(frames.add(1, bytes: 100) == 0)
        #expect(frames.add(2, bytes: 50) == 50)
        #expect(frames.remove(1) == 0)
        #expect(frames.remove(1) == 100)
        #expect(frames.remove(2) == 50)
        #expect(frames.remove(2) == 0)
        #expect(frames.add(1, bytes: 7) == 7)
    }
}
