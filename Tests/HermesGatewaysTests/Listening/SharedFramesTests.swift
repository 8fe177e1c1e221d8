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

    @Test func `each of many sharers holds little`() {
        var frames = SharedFrames()
        #expect(frames.part == 1)
        for _ in 0..<100 { _ = frames.add(1, bytes: 1_000) }
        #expect(frames.part == 0.01)
        _ = frames.add(2, bytes: 100_000)
        #expect(frames.part == 101_000.0 / 200_000)
        for _ in 0..<100 { _ = frames.remove(1) }
        #expect(frames.part == 1)
        _ = frames.remove(2)
        #expect(frames.part == 1)
    }
}
