// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct MessageIDTests {
    @Test func `grows even if the clock does not`() {
        var generator = MessageIDGenerator()
        var ids: [MessageID] = []
        for moment in [5, 5, 5, 6, 3, 6, 7] as [Int64] {
            for _ in 0..<100 { ids.append(generator.next(now: Timestamp(rawValue: moment))) }
        }
        #expect(ids == ids.sorted())
        #expect(Set(ids).count == ids.count)
        // A store can use the upper half as a key, because it is unique.
        #expect(Set(ids.map(\.high)).count == ids.count)
        #expect(Set(ids.map(\.low)).count == ids.count)
        #expect(ids[0].timestamp.rawValue == 5)
        #expect(ids[699].timestamp.rawValue == 7)
        #expect(ids.map(\.description) == ids.map(\.description).sorted())
        _ = generator.next(now: Timestamp(rawValue: .min))
        _ = generator.next(now: Timestamp(rawValue: .max))
    }

    @Test func `reads what it writes`() throws {
        var generator = MessageIDGenerator()
        for moment in [0, 1, 1_800_000_000_000] as [Int64] {
            let id = generator.next(now: Timestamp(rawValue: moment))
            #expect(id.description.utf8.count == 26)
            #expect(MessageID(id.description) == id)
            #expect(MessageID(id.description.lowercased()) == id)
            #expect(MessageID(bytes: id.bytes) == id)
        }
        let largest = MessageID(high: .max, low: .max)
        #expect(largest.description == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
        #expect(MessageID(largest.description) == largest)
        // This is the example in the ULID specification.
        let example = try #require(MessageID("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
        #expect(example.timestamp.rawValue == 1_469_922_850_259)
    }

    @Test(arguments: [
        "", "7ZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "7ZZZZZZZZZZZZUZZZZZZZZZZZZ",
        "7ZZZZZZZZZZZZ ZZZZZZZZZZZZ", "7ZZZZZZZZZZZZéZZZZZZZZZZZ",
    ])
    func `refuses`(text: String) {
        #expect(MessageID(text) == nil)
        #expect(MessageID(bytes: [1, 2, 3]) == nil)
    }
}
