// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Hermes

/// Runs the cases of `web/cases/topics.json` on the tracking of topics.
@Suite struct TopicCaseTests {
    typealias Case = StepsCase<Step>

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case seq, epoch, topic, expect
        }

        enum Event: String, Decodable { case arrived, arrivedOnEach, forget, forgetAll }

        let event: Event
        let seq: UInt64?
        let epoch: String?
        let topic: String?
        let expect: Expected<[UInt64]>?
    }

    static let cases = try? MachineCases.read("topics", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("topics", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the tracker does what the cases say`(_ entry: Case) throws {
        var tracker = TopicTracker()
        for (index, step) in entry.steps.enumerated() {
            switch step.event {
            case .arrived:
                let missed = try Self.arrived(step, on: #require(step.topic), &tracker)
                let expected = try #require(step.expect, "step \(index)").value
                #expect(missed.map { [$0.lowerBound, $0.upperBound] } == expected, "step \(index)")
            case .arrivedOnEach:
                for number in 0..<1000 {
                    let missed = try Self.arrived(step, on: "\(number)", &tracker)
                    #expect(missed == nil)
                }
            case .forget:
                try tracker.forget(#require(step.topic))
            case .forgetAll:
                tracker.forgetAll()
            }
        }
    }

    private static func arrived(
        _ step: Step,
        on topic: String,
        _ tracker: inout TopicTracker
    ) throws -> ClosedRange<UInt64>? {
        let epoch = try #require(step.epoch.flatMap { UInt64($0) })
        return try tracker.arrived(#require(step.seq), epoch: epoch, on: topic)
    }
}
