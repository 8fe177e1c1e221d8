// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@testable import HermesServer

@Suite("Progress of the start") struct StartProgressTests {
    @Test func `each step is shown, and those that took long are logged`() {
        let (lines, time, health) = (LoggedText(), ManualClock(), HealthState())
        let progress = StartProgress(health, time: time, logger: lines.logger())
        progress.note(.began("retained messages"))
        #expect(health.text == "starting: reading the retained messages")
        time.advance(by: .milliseconds(900))
        progress.note(.ended(count: 1))
        progress.note(.began("kept sessions"))
        #expect(health.text == "starting: reading the kept sessions")
        time.advance(by: .seconds(3))
        progress.note(.ended(count: 200_000))
        progress.note(.ended(count: 0))
        #expect(lines.all.count == 1)
        #expect(lines.all.first?.contains(#"msg="read the kept sessions" count=200000 seconds=3"#) == true)
    }

    @Test func `a messenger that loads names what it reads`() async throws {
        let store = MemoryStore()
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store
        )
        let (health, time, lines) = (HealthState(), ManualClock(), LoggedText())
        let progress = StartProgress(health, time: time, logger: lines.logger())
        try await ServerAssembly.load(messenger) {
            progress.note($0)
            time.advance(by: .seconds(1))
        }
        let steps = [
            "retained messages", "kept sessions", "accounts that are being deleted", "devices with push tokens",
        ]
        #expect(lines.all.count == steps.count)
        for (step, line) in zip(steps, lines.all) { #expect(line.contains("read the \(step)")) }
        await messenger.shutdown()
    }
}
