// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

/// Runs the cases of `web/cases/statistics.json` on the delivery statistics.
@Suite struct StatisticsCaseTests {
    typealias Case = StepsCase<Step>

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case kind, latency, date, counts, what, count, interval, isStable, networks, expect, sums
        }

        enum Event: String, Decodable {
            case entered, received, noticed, happened, learned, kinds, upload, uploadEnded, uploadFailed, unsent,
                restore
        }

        enum Happening: String, Decodable { case closed, resets, heartbeatTimeouts, networkChanges, topicMissed }

        let event: Event
        let kind: String?
        let latency: Int64?
        let date: Int64?
        let counts: InboxCaseTests.Case.Counts?
        let what: Happening?
        let count: UInt64?
        let interval: Double?
        let isStable: Bool?
        let networks: [Network]?
        let expect: Expected<[Network]>?
        let sums: [UInt64]?
    }

    static let cases = try? MachineCases.read("statistics", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("statistics", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the counter does what the cases say`(_ entry: Case) throws {
        var counter = DeliveryCounter()
        for (index, step) in entry.steps.enumerated() {
            switch step.event {
            case .upload:
                let networks = counter.upload(appVersion: "1")?.networks
                if let sums = step.sums {
                    let known = try #require(networks)
                    #expect([UInt64(known.count), known.map(\.received).reduce(0, +)] == sums, "step \(index)")
                } else {
                    let expected = try #require(step.expect, "step \(index)").value
                    #expect(networks == expected?.map(\.counts), "step \(index)")
                }
            case .unsent:
                let expected = try #require(step.expect, "step \(index)").value
                #expect(counter.unsent(appVersion: "1")?.networks == expected?.map(\.counts), "step \(index)")
            case .entered, .received, .noticed, .happened, .learned, .kinds, .uploadEnded, .uploadFailed, .restore:
                try Self.run(step, &counter)
            }
        }
    }

    private static func run(_ step: Step, _ counter: inout DeliveryCounter) throws {
        switch step.event {
        case .entered:
            try counter.entered(#require(step.kind))
        case .received:
            try counter.received(latency: step.latency, date: #require(step.date))
        case .noticed:
            try counter.noticed(#require(step.counts).counts, date: #require(step.date))
        case .happened:
            try happened(#require(step.what), step, &counter)
        case .learned:
            let interval = try Duration.milliseconds(#require(step.interval))
            let learned = LearnedHeartbeat(interval: interval, isStable: step.isStable == true)
            try counter.learned(learned, date: #require(step.date))
        case .kinds:
            for number in try 1...#require(step.count) {
                counter.entered("kind-\(number)")
                try counter.received(latency: nil, date: #require(step.date))
            }
        case .uploadEnded:
            counter.uploadEnded()
        case .uploadFailed:
            counter.uploadFailed()
        case .restore:
            var statistics = Hermes_V1_Statistics()
            statistics.networks = try #require(step.networks).map(\.counts)
            counter.restore(statistics)
        case .upload, .unsent:
            Issue.record("\(step.event) has an outcome")
        }
    }

    private static func happened(_ what: Step.Happening, _ step: Step, _ counter: inout DeliveryCounter) throws {
        let date = try #require(step.date)
        let end: ConnectionEnd
        switch what {
        case .topicMissed: return counter.missedPushes(step.count ?? 1, date: date)
        case .closed: end = .closed
        case .resets: end = .reset
        case .heartbeatTimeouts: end = .heartbeatTimeout
        case .networkChanges: end = .networkChanged
        }
        for _ in 0..<(step.count ?? 1) { counter.ended(end, in: counter.kind, date: date) }
    }
}

/// The counts of one network. An absent field is zero.
struct Network: Decodable, Equatable, Sendable {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private typealias Count = any WritableKeyPath<Hermes_V1_NetworkStatistics, UInt64> & Sendable

    private static let counts: [String: Count] = [
        "received": \.received, "duplicates": \.duplicates, "gaps": \.gaps, "repaired": \.repaired, "lost": \.lost,
        "within1S": \.within1S, "within10S": \.within10S, "later": \.later, "closed": \.closed, "resets": \.resets,
        "heartbeatTimeouts": \.heartbeatTimeouts, "networkChanges": \.networkChanges, "topicMissed": \.topicMissed,
    ]

    private(set) var counts = Hermes_V1_NetworkStatistics()

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        for key in container.allKeys {
            switch key.stringValue {
            case "label": counts.label = try container.decode(String.self, forKey: key)
            case "fromMs": counts.fromMs = try container.decode(Int64.self, forKey: key)
            case "toMs": counts.toMs = try container.decode(Int64.self, forKey: key)
            case "heartbeatSeconds": counts.heartbeatSeconds = try container.decode(UInt32.self, forKey: key)
            case "heartbeatStable": counts.heartbeatStable = try container.decode(Bool.self, forKey: key)
            case let name:
                guard let path = Self.counts[name] else { throw MachineCases.UnknownKey(key: name) }
                counts[keyPath: path] = try container.decode(UInt64.self, forKey: key)
            }
        }
    }
}
