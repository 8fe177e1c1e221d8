// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct TypingGateTests {
    private let gate = TypingGate()
    private let start = Timestamp(rawValue: 1_800_000_000_000)

    private func passes(
        _ conversation: ConversationID,
        _ user: UserID,
        stopped: Bool = false,
        after time: Duration = .zero
    ) -> Bool {
        gate.admits(conversation, by: user, isStopped: stopped, now: start.advanced(by: time))
    }

    @Test func `a flood of signs is told once a second, to a group every three`() throws {
        let (ann, bob) = (try user(1), try user(2))
        let direct = ConversationID.direct(between: ann, and: bob)
        let group = ConversationID.group(try #require(GroupID(rawValue: 7)))
        for (conversation, expected) in [(direct, 10), (group, 4)] {
            let told = (0..<10_000).count { passes(conversation, ann, after: .milliseconds($0)) }
            #expect(told == expected)
            #expect(passes(conversation, bob))
        }
    }

    @Test func `an end is told after a beginning, once`() throws {
        let ann = try user(1)
        let notes = ConversationID.direct(between: ann, and: ann)
        #expect(passes(notes, ann))
        #expect(passes(notes, ann, stopped: true, after: .milliseconds(1)))
        #expect(!passes(notes, ann, stopped: true, after: .milliseconds(2)))
        #expect(!passes(notes, ann, after: .milliseconds(3)))
        #expect(passes(notes, ann, after: .seconds(1)))
        #expect(passes(notes, ann, stopped: true, after: .seconds(1)))
    }

    @Test func `what was refused holds nothing back, nor does a clock that went back`() throws {
        let (ann, bob) = (try user(1), try user(2))
        let direct = ConversationID.direct(between: ann, and: bob)
        #expect(passes(direct, ann))
        gate.forget(direct, by: ann)
        #expect(passes(direct, ann))
        #expect(passes(direct, ann, after: .seconds(-3_600)))
    }

    @Test func `the table is bounded`() throws {
        for number in 1...70_000 {
            let conversation = ConversationID.group(try #require(GroupID(rawValue: Int32(number))))
            #expect(passes(conversation, try user(1)))
        }
        #expect(gate.count <= 65_536)
    }
}
