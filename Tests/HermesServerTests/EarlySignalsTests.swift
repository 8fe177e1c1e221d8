// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesServer
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct EarlySignalsTests {
    @Test func `a SIGHUP during the start ends nothing and is remembered`() async {
        let signals = EarlySignals { _ in }
        // After this call, SIGTERM and SIGINT do not end the tests.
        signals.ready()
        defer { for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) } }
        kill(getpid(), SIGHUP)
        var isRemembered = false
        for await _ in signals.hangups {
            isRemembered = true
            break
        }
        #expect(isRemembered)
    }
}
