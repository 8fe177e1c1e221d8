// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

/// Runs the cases of `web/cases/reconnect.json` on the reconnect schedule.
@Suite struct ReconnectCaseTests {
    typealias Schedule = ConnectionEngine.ReconnectSchedule

    struct Case: MachineCase {
        enum CodingKeys: String, CodingKey, CaseIterable { case name, policy, seed, steps }

        struct Policy: Decodable, Sendable {
            let windows: [Double]
            let delays: [Double]
            let jitter: Double
            let maxAdvisedWindow: Double
        }

        let name: String
        let policy: Policy
        let seed: UInt64
        let steps: [Step]
    }

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case now, advice, slot, earliest, end, within, expect
        }

        enum Event: String, Decodable { case next, nextAt, slot, startAnew, arrived }

        struct Slot: Decodable {
            let earliest: Double
            let moment: Double
            let end: Double
        }

        let event: Event
        let now: Double?
        let advice: CaseAdvice?
        let slot: Slot?
        let earliest: Double?
        let end: Double?
        let within: [Double]?
        let expect: Expected<Double>?

        var time: NIODeadline { get throws { NIODeadline(caseTime: try #require(now)) } }
    }

    static let cases = try? MachineCases.read("reconnect", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("reconnect", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the schedule does what the cases say`(_ entry: Case) throws {
        let policy = ReconnectPolicy(
            windows: entry.policy.windows.map { .milliseconds($0) },
            delays: entry.policy.delays.map { .milliseconds($0) },
            jitter: entry.policy.jitter,
            maxAdvisedWindow: .milliseconds(entry.policy.maxAdvisedWindow)
        )
        var schedule = Schedule(policy, seed: entry.seed)
        for (index, step) in entry.steps.enumerated() {
            switch step.event {
            case .startAnew:
                schedule.startAnew()
            case .arrived:
                schedule.arrived()
            case .slot:
                let slot = try schedule.slot(#require(step.advice).advice, now: step.time)
                #expect(slot.earliest.caseTime == step.earliest, "step \(index)")
                #expect(slot.end.caseTime == step.end, "step \(index)")
                #expect(slot.moment >= slot.earliest && slot.moment <= slot.end, "step \(index)")
            case .next:
                try Self.check(schedule.next(now: step.time), step, index)
            case .nextAt:
                let slot = try #require(step.slot)
                let advised = Schedule.Slot(
                    earliest: NIODeadline(caseTime: slot.earliest),
                    moment: NIODeadline(caseTime: slot.moment),
                    end: NIODeadline(caseTime: slot.end)
                )
                try Self.check(schedule.next(advised, now: step.time), step, index)
            }
        }
    }

    private static func check(_ at: NIODeadline?, _ step: Step, _ index: Int) throws {
        if let within = step.within {
            let time = try #require(at, "step \(index)").caseTime
            #expect(time >= within[0] && time < within[1], "step \(index)")
        } else {
            let expected = try #require(step.expect, "step \(index)").value
            #expect(at?.caseTime == expected, "step \(index)")
        }
    }
}

/// The server's advice in a case.
struct CaseAdvice: Decodable, Sendable {
    let notBefore: Double
    let window: Double

    var advice: ConnectionEngine.Advice { .init(notBefore: .milliseconds(notBefore), window: .milliseconds(window)) }
}
