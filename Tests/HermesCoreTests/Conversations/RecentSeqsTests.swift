// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("The recent seqs of a conversation")
struct RecentSeqsTests {
    @Test
    func `counts what a set of all seqs counts, as long as the mark is in the window`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var seqs = RecentSeqs()
            var other = RecentSeqs()
            var all: Set<UInt64> = []
            var last: UInt64 = 0
            for _ in 0..<300 {
                last += UInt64.random(in: 1...3, using: &random)
                guard Bool.random(using: &random) else { continue }
                // Some of the seqs are old, like those of recalls.
                let seq = last - min(last - 1, UInt64.random(in: 0...80, using: &random))
                all.insert(seq)
                if Bool.random(using: &random) { seqs.insert(seq) } else { other.insert(seq) }
                let mark = last - min(last, UInt64.random(in: 0...64, using: &random))
                let expected = last - mark - UInt64(all.count { $0 > mark })
                #expect(RecentSeqs.count(after: mark, upTo: last, outside: seqs, and: other) == expected)
            }
        }
    }

    @Test
    func `no number leaves the range`() {
        var seqs = RecentSeqs(newest: .max, bits: .max)
        seqs.insert(.max)
        seqs.insert(0)
        seqs.advance(to: 1)
        #expect(seqs.newest == .max && seqs.bits == .max)
        #expect(RecentSeqs.count(after: 0, upTo: .max, outside: seqs) == UInt64.max - 64)
        #expect(RecentSeqs.count(after: .max, upTo: 0, outside: seqs) == 0)
        #expect(RecentSeqs.count(after: 0, upTo: 64, outside: seqs) == 64)
        var far = RecentSeqs(newest: 0, bits: 1)
        far.insert(.max)
        #expect(far.bits == 1 && far.newest == .max)
    }

    @Test(arguments: ["user:1", "user:2147483647", "group:9"])
    func `a place is read back from its text`(text: String) {
        #expect(ConversationPlace(text: text)?.text == text)
    }

    @Test(arguments: [
        "", ":", "user", "user:", "user:0", "user:-1", "user:+1", "user:2147483648", "room:1", "user:1:2",
    ])
    func `no other text is a place`(text: String) {
        #expect(ConversationPlace(text: text) == nil)
    }
}
