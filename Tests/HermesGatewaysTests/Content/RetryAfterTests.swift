// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@testable import HermesGateways

struct RetryAfterTests {
    @Test func `a wait is told in whole milliseconds, rounded up`() {
        let error = HermesError(.rateLimited, "", retryAfter: .nanoseconds(1_500_001))
        #expect(error.retryAfterMilliseconds == 2)
        #expect(HermesError(.rateLimited, "", retryAfter: .zero).retryAfterMilliseconds == 1)
        #expect(HermesError(.rateLimited, "", retryAfter: .seconds(200_000)).retryAfterMilliseconds == 86_400_000)
        #expect(HermesError(.rateLimited, "").retryAfterMilliseconds == nil)
    }
}
