// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import HermesGateways

struct MQTTRetainedQueueTests {
    @Test func `tries for a full queue become rare, and begin anew once something found a place`() {
        let queue = MQTTRetainedQueue()
        let stuck = (0..<9).map { _ in queue.nextRetryPause(isStuck: true) }
        #expect(stuck == [1, 2, 4, 8, 16, 32, 64, 64, 64].map { TimeAmount.seconds($0) })
        #expect(queue.nextRetryPause(isStuck: false) == .seconds(1))
        #expect(queue.nextRetryPause(isStuck: true) == .seconds(2))
    }
}
