// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Hermes

/// Runs the cases of `web/cases/heartbeat.json` on the adaptation of the heartbeat.
@Suite struct HeartbeatCaseTests {
    struct Case: MachineCase {
        enum CodingKeys: String, CodingKey, CaseIterable { case name, start, steps }

        struct Start: Decodable, Sendable {
            let interval: Double
            let isStable: Bool
            let changedAt: Int64
        }

        let name: String
        let start: Start
        let steps: [Step]
    }

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case date, times, interval, isStable, changedAt
        }

        enum Event: String, Decodable { case succeeded, failed, interrupted }

        let event: Event
        let date: Int64
        let times: Int?
        let interval: Double?
        let isStable: Bool?
        let changedAt: Int64?
    }

    static let cases = try? MachineCases.read("heartbeat", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("heartbeat", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the interval follows the cases`(_ entry: Case) {
        let bounds = HeartbeatAdaptation()
        var learned = LearnedHeartbeat(
            interval: .milliseconds(entry.start.interval),
            isStable: entry.start.isStable,
            changedAt: entry.start.changedAt
        )
        for (index, step) in entry.steps.enumerated() {
            for _ in 0..<(step.times ?? 1) {
                switch step.event {
                case .succeeded: learned.succeeded(within: bounds, date: step.date)
                case .failed: learned.failed(within: bounds, date: step.date)
                case .interrupted: learned.interrupted()
                }
            }
            if let interval = step.interval { #expect(learned.interval == .milliseconds(interval), "step \(index)") }
            if let isStable = step.isStable { #expect(learned.isStable == isStable, "step \(index)") }
            if let changedAt = step.changedAt { #expect(learned.changedAt == changedAt, "step \(index)") }
        }
    }
}
