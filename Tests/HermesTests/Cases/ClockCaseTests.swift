// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Hermes

/// Runs the cases of `web/cases/clock.json` on the estimate of the server's clock.
@Suite struct ClockCaseTests {
    typealias Case = StepsCase<Step>

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case askedAt, answeredAt, serverTime, times, expect
        }

        enum Event: String, Decodable { case answered }

        let event: Event
        let askedAt: Int64
        let answeredAt: Int64
        let serverTime: Int64
        let times: Int?
        let expect: Expected<Int64>?
    }

    static let cases = try? MachineCases.read("clock", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("clock", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the offset follows the cases`(_ entry: Case) throws {
        var clock = ClockOffset()
        for (index, step) in entry.steps.enumerated() {
            for _ in 0..<(step.times ?? 1) {
                clock.answered(askedAt: step.askedAt, answeredAt: step.answeredAt, serverTime: step.serverTime)
            }
            let expected = try #require(step.expect, "step \(index)").value
            #expect(clock.milliseconds == expected, "step \(index)")
        }
    }
}
