// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Testing

@testable import HermesCLI
@testable import HermesServer

/// The output of `hermes stats`.
@Suite struct StatsOutputTests {
    @Test func `deliveries are tables by version and network, and hostile names reach no control of the terminal`()
        throws
    {
        let all = [
            ControlDeliveries(
                appVersion: "1.2",
                network: "",
                counts: ["reports": 3, "within_1s": 40, "ended_reset": 7]
            ),
            ControlDeliveries(
                appVersion: "2.0",
                network: "wi\u{1B}[2Jfi",
                counts: ["reports": 1, "heartbeat_300s": 9]
            ),
        ]
        let lines = ViewFormat.text(all, .month).split(separator: "\n").map(String.init)
        #expect(lines.first == "deliveries of 30 days, as clients report them")
        #expect(lines.contains { $0.hasPrefix("1.2          -") && $0.contains(" 3 ") && $0.contains(" 40 ") })
        #expect(!lines.joined().contains("\u{1B}") && lines.contains { $0.contains("wi?[2Jfi") })
        #expect(lines.count { $0.hasPrefix("1.2") } == 3)
        #expect(ViewFormat.text([], .hour) == "no client has reported in the last 1 h")
    }

    @Test func `a choice of version or network needs the deliveries`() throws {
        #expect(throws: (any Error).self) { try StatsCommand.parse(["--network", "wifi"]) }
        #expect(throws: (any Error).self) { try StatsCommand.parse(["--period", "year"]) }
        let command = try StatsCommand.parse(["--deliveries", "--network", "", "--period", "day"])
        #expect(command.network == "" && command.appVersion == nil && command.period == .day)
    }
}
