// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

/// Runs the cases of `web/cases/inbox.json` on the inbox tracker.
@Suite struct InboxCaseTests {
    typealias Tracker = InboxTracker<String>

    struct Case: MachineCase {
        enum CodingKeys: String, CodingKey, CaseIterable { case name, start, steps, counts }

        struct Start: Decodable, Sendable {
            let epoch: String
            let taken: UInt64
        }

        struct Counts: Decodable, Sendable {
            let duplicates: UInt64
            let gaps: UInt64
            let repaired: UInt64
            let lost: UInt64

            var counts: InboxCounts {
                InboxCounts(duplicates: duplicates, gaps: gaps, repaired: repaired, lost: lost)
            }
        }

        let name: String
        let start: Start
        let steps: [Step]
        let counts: Counts
    }

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case now, epoch, serverAcknowledged, head, hasLostEntries, oldest, entry, seq, from, to, resumption, expect
            case nextDeadline
        }

        enum Event: String, Decodable { case resumed, arrived, arriveAll, taken, synchronized, deadline, lost }

        let event: Event
        let now: Double
        let epoch: String?
        let serverAcknowledged: UInt64?
        let head: UInt64?
        let hasLostEntries: Bool?
        let oldest: UInt64?
        /// The entry; absent or null for an entry that is not for the app.
        let entry: String?
        let seq: UInt64?
        let from: UInt64?
        let to: UInt64?
        let resumption: String?
        let expect: [String]?
        let nextDeadline: Expected<Double>?
    }

    static let cases = try? MachineCases.read("inbox", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("inbox", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the tracker does what the cases say`(_ entry: Case) throws {
        var tracker = try Tracker(epoch: #require(UInt64(entry.start.epoch)), taken: entry.start.taken)
        for (index, step) in entry.steps.enumerated() {
            let output = try Self.run(step, &tracker)
            if let expect = step.expect { #expect(output.map(Self.text) == expect, "step \(index)") }
            if let expected = step.nextDeadline {
                #expect(tracker.nextDeadline?.caseTime == expected.value, "step \(index)")
            }
        }
        #expect(tracker.counts == entry.counts.counts)
    }

    private static func run(_ step: Step, _ tracker: inout Tracker) throws -> [Tracker.Output] {
        let now = NIODeadline(caseTime: step.now)
        var output: [Tracker.Output] = []
        switch step.event {
        case .resumed:
            let resumption = try tracker.resumed(
                epoch: number(step.epoch),
                serverAcknowledged: #require(step.serverAcknowledged),
                head: #require(step.head),
                hasLostEntries: step.hasLostEntries ?? false,
                now: now
            )
            #expect(text(resumption, head: step.head) == step.resumption)
        case .arrived:
            let seq = try #require(step.seq)
            tracker.arrived(step.entry, seq: seq, to: step.to ?? seq, now: now, output: &output)
        case .arriveAll:
            let seqs = try #require(step.from)...#require(step.to)
            for seq in seqs { tracker.arrived("\(seq)", seq: seq, to: seq, now: now, output: &output) }
            #expect(output.count == seqs.count)
        case .taken:
            try tracker.taken(seq: #require(step.seq), now: now, output: &output)
        case .synchronized:
            let (head, oldest) = try (#require(step.head), #require(step.oldest))
            try tracker.synchronized(epoch: number(step.epoch), head: head, oldest: oldest, now: now, output: &output)
        case .deadline:
            tracker.deadlineReached(now: now, output: &output)
        case .lost:
            tracker.lost()
        }
        return output
    }

    private static func number(_ epoch: String?) throws -> UInt64 { try #require(epoch.flatMap { UInt64($0) }) }

    private static func text(_ resumption: Tracker.Resumption, head: UInt64?) -> String {
        switch resumption {
        case .goesOn: "goesOn"
        case .newInbox: "newInbox"
        case .rewound(let seq): seq == head ? "rewound" : "rewound to \(seq)"
        }
    }

    private static func text(_ output: Tracker.Output) -> String {
        switch output {
        case .deliver(let seq, let entry): "deliver \(seq) \(entry)"
        case .missed(let seqs): "missed \(seqs.lowerBound) \(seqs.upperBound)"
        case .synchronize(let seq): "synchronize \(seq)"
        case .acknowledge(let seq): "acknowledge \(seq)"
        }
    }
}
