// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct NativeStatisticsTests {
    @Test func `reports are checked and come at intervals`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let many = try await ann.ask(
                1,
                .statistics(.with { $0.networks = Array(repeating: Hermes_V1_NetworkStatistics(), count: 17) })
            )
            #expect(many.error.code == 2006)
            let unprintable = try await ann.ask(2, .statistics(.with { $0.appVersion = "1\n2" }))
            #expect(unprintable.error.code == 2001)
            let backwards = try await ann.ask(
                3,
                .statistics(.with { $0.networks = [.with { $0.fromMs = 2 }] })
            )
            #expect(backwards.error.code == 2001)
            let good = try await ann.ask(
                4,
                .statistics(
                    .with {
                        $0.appVersion = "1.2"
                        $0.networks = [.with { $0.received = .max }]
                    }
                )
            )
            #expect(!good.hasError)
            let again = try await ann.ask(5, .statistics(.with { $0.appVersion = "1.2" }))
            #expect(again.error.code == 3001 && again.error.retryAfterMs > 0)
            let now = server.messenger.time.now()
            #expect(server.messenger.clientStatistics.versions(.day, now: now).first?.counts[.received] == 1_000_000)
        }
    }
}
