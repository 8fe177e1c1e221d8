// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@testable import HermesServer

@Suite struct PushMetricsTests {
    @Test func `refused notifications get one line a minute, with their number`() {
        let (lines, time) = (LoggedText(), ManualClock())
        let metrics = PushMetrics(logger: lines.logger(), time: time)
        for _ in 0..<1_000 { metrics.note(.sent(.webPush, .refused(reason: "no"))) }
        #expect(lines.all.count == 1)
        metrics.note(.sent(.fcm, .refused(reason: "no")))
        metrics.note(.sent(.webPush, .retry(after: nil, isService: false, reason: "later")))
        #expect(lines.all.count == 3)
        time.advance(by: .seconds(60))
        metrics.note(.sent(.webPush, .refused(reason: "no")))
        #expect(lines.all.count == 4)
        #expect(lines.all.last?.contains("skipped=999") == true)
    }
}
