// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// Runs the cases of `web/cases/outbox.json` on the outbox's queue.
@Suite struct OutboxCaseTests {
    typealias Case = StepsCase<Step>

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case id, to, uid, isNew, error, code, retryAfter, now, phase, nextDeadline, expect
        }

        enum Event: String, Decodable { case added, stored, started, halted, next, sent, interrupted, retried, refused }

        let event: Event
        let id: String?
        let to: UInt32?
        let uid: UInt32?
        let isNew: Bool?
        let error: UInt32?
        let code: UInt32?
        let retryAfter: Double?
        let now: Double?
        let phase: String?
        let nextDeadline: Expected<Double>?
        let expect: [String]?
    }

    struct Header: Decodable {
        struct Limits: Decodable {
            let maxEntries: Int
            let maxBytes: Int
            let maxSending: Int
        }

        let limits: Limits
    }

    static let cases = try? MachineCases.read("outbox", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("outbox", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the queue does what the cases say`(_ entry: Case) throws {
        let limits = try (MachineCases.header("outbox") as Header).limits
        var queue = OutboxQueue(
            limits: OutboxLimits(
                maxEntries: limits.maxEntries,
                maxBytes: limits.maxBytes,
                maxSending: limits.maxSending
            )
        )
        for (index, step) in entry.steps.enumerated() { try Self.run(step, index, &queue) }
    }

    private static func run(_ step: Step, _ index: Int, _ queue: inout OutboxQueue) throws {
        let uid = step.uid ?? 1
        switch step.event {
        case .added:
            let send = try OutboxQueueTests.send(#require(step.id), to: UserID(rawValue: #require(step.to)))
            do {
                let isNew = try queue.added(send, uid: uid, date: 0).isNew
                #expect(step.error == nil, "step \(index)")
                #expect(isNew == step.isNew ?? true, "step \(index)")
            } catch {
                #expect(error.code.rawValue == step.error, "step \(index)")
            }
        case .started:
            queue.started(uid: uid)
        case .halted:
            queue.halted()
        case .stored:
            try queue.stored(number(step, queue))
        case .interrupted:
            try queue.interrupted(number(step, queue))
        case .sent:
            let removed = try queue.removed(number(step, queue))
            #expect(removed != nil, "step \(index)")
        case .retried:
            let retried = try queue.retried(clientID: #require(step.id))
            #expect(retried != nil, "step \(index)")
        case .refused:
            let retryAfter = step.retryAfter.map { Duration.milliseconds($0) }
            let error = try HermesClientError(.init(rawValue: #require(step.code)), "no", retryAfter: retryAfter)
            let now = try NIODeadline(caseTime: #require(step.now))
            let refused = try queue.refused(number(step, queue), error, now: now)
            #expect(refused.map { text($0.phase) } == step.phase, "step \(index)")
            let expected = try #require(step.nextDeadline, "step \(index)").value
            #expect(queue.nextDeadline?.caseTime == expected, "step \(index)")
        case .next:
            let next = try queue.next(now: NIODeadline(caseTime: #require(step.now)))
            #expect(next.map(\.item.send.clientID) == step.expect, "step \(index)")
        }
    }

    private static func number(_ step: Step, _ queue: OutboxQueue) throws -> UInt64 {
        let id = try #require(step.id)
        return try #require(queue.entry(clientID: id)).item.number
    }

    private static func text(_ phase: OutboxQueue.Phase) -> String {
        switch phase {
        case .storing: "storing"
        case .queued: "queued"
        case .sending: "sending"
        case .resting: "resting"
        case .failed: "failed"
        }
    }
}
