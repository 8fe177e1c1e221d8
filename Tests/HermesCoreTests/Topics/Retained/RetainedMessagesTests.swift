// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

@Suite struct RetainedMessagesTests {
    private let now = Timestamp(rawValue: 1_000)

    private func publication(
        _ topic: String,
        _ text: String = "x",
        until expiry: Int64? = nil
    ) throws -> StoredPublication {
        StoredPublication(
            topic: try #require(TopicName(topic)),
            payload: ByteBuffer(string: text),
            qos: .atLeastOnce,
            retain: true,
            details: expiry.map { PublicationDetails(expiresAt: Timestamp(rawValue: $0)) },
            publishedAt: now
        )
    }

    private func texts(_ retained: RetainedMessages, _ filter: String) throws -> [String] {
        let filter = try #require(TopicFilter(filter))
        return retained.matching(filter, now: now).map { "\($0.topic)=\(String(buffer: $0.payload))" }.sorted()
    }

    @Test func `every filter finds what it matches`() throws {
        var generator = SplitMix(state: 7)
        let words = ["a", "b", "", "$SYS", "c1"]
        func path(_ words: [String]) -> String {
            (0...Int.random(in: 0...4, using: &generator)).map { _ in words.randomElement(using: &generator) ?? "" }
                .joined(separator: "/")
        }
        var tree = RetainedTree()
        let empty = tree.footprint
        var topics: [TopicName] = []
        for _ in 0..<400 {
            guard let topic = TopicName(path(words)), tree.value(of: topic) == nil else { continue }
            tree.insert(topic, value: UInt32(topics.count))
            topics.append(topic)
        }
        let removed = Set(topics.indices.filter { _ in Bool.random(using: &generator) })
        for index in removed { tree.remove(topics[index]) }
        for _ in 0..<500 {
            guard let filter = TopicFilter(path(words + ["+", "+"]) + (Bool.random(using: &generator) ? "/#" : ""))
            else { continue }
            var found: [UInt32] = []
            tree.forEachMatch(of: filter) { value in
                found.append(value)
                return true
            }
            let expected = topics.indices.filter { !removed.contains($0) && filter.matches(topics[$0]) }
            #expect(found.sorted() == expected.map { UInt32($0) }, "\(filter)")
        }
        for topic in topics { tree.remove(topic) }
        #expect(tree.footprint == empty)
    }

    @Test func `what cannot be stored is taken back`() throws {
        let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(1 << 20))
        retained.load([try publication("t", "stored")])
        let first = try publication("t", "first")
        let second = try publication("t", "second")
        let removal = try publication("t", "")
        #expect(retained.begin(first))
        #expect(try texts(retained, "t") == ["t=first"])
        #expect(retained.begin(second))
        retained.finish(first, isStored: true)
        #expect(try texts(retained, "#") == ["t=second"], "the newest is on its way")
        retained.finish(second, isStored: false)
        #expect(try texts(retained, "+") == ["t=first"])
        #expect(retained.begin(removal))
        #expect(try texts(retained, "#").isEmpty)
        retained.finish(removal, isStored: false)
        #expect(try texts(retained, "#") == ["t=first"])
        #expect(retained.begin(removal))
        #expect(retained.begin(second))
        // The changes are committed in the opposite order. The last state of the store applies.
        retained.finish(second, isStored: true)
        retained.finish(removal, isStored: true)
        #expect(try texts(retained, "#").isEmpty)
        let statistics = retained.statistics
        #expect(statistics.count == 0 && statistics.bytes == 0 && statistics.refused == 0)
    }

    @Test func `a search goes on while messages come and go`() throws {
        var generator = SplitMix(state: 11)
        let retained = RetainedMessages(messages: SharedLimit(10_000), bytes: SharedLimit(1 << 30))
        let names = (0..<400).map { "r/\($0 % 20)/\($0)" }
        retained.load(try names.map { try publication($0, "old") })
        var search = retained.search(try #require(TopicFilter("r/+/#")))
        var found: [String: String] = [:]
        var touched: Set<String> = []
        while !search.isAtEnd {
            var steps = 17
            let page = retained.next(&search, now: now, limit: 5, steps: &steps)
            #expect(page.count <= 5 && steps >= 0)
            for one in page {
                #expect(found.updateValue(String(buffer: one.payload), forKey: "\(one.topic)") == nil)
                #expect(retained.publication(of: one.topic)?.payload == one.payload, "the present one")
            }
            // One publication changes, one is removed, and one is new, so that the same records are used again.
            let name = names.randomElement(using: &generator) ?? ""
            let gone = names.randomElement(using: &generator) ?? ""
            touched.formUnion([name, gone])
            for change in [
                try publication(name, "new"), try publication(gone, ""), try publication("x/\(name)", "new"),
            ] {
                #expect(retained.begin(change))
                retained.finish(change, isStored: true)
            }
        }
        for (name, text) in found where !touched.contains(name) { #expect(text == "old") }
        #expect(found.keys.allSatisfy { $0.hasPrefix("r/") })
        #expect(Set(names).subtracting(touched).isSubset(of: found.keys), "nothing that stayed was left out")
    }

    @Test func `a message that changes before the search reaches its topic is found, the new one`() throws {
        let retained = RetainedMessages(messages: SharedLimit(1_000), bytes: SharedLimit(1 << 30))
        let names = (0..<100).map { "r/\($0)" }
        retained.load(try names.map { try publication($0, "old") })
        var search = retained.search(try #require(TopicFilter("r/+")))
        var steps = Int.max
        let first = retained.next(&search, now: now, limit: 64, steps: &steps).map(\.topic.rawValue)
        for name in names {
            let change = try publication(name, "new")
            #expect(retained.begin(change))
            retained.finish(change, isStored: true)
        }
        let rest = retained.next(&search, now: now, limit: 64, steps: &steps)
        #expect(Set(rest.map(\.topic.rawValue)) == Set(names).subtracting(first))
        #expect(rest.allSatisfy { String(buffer: $0.payload) == "new" })
        #expect(search.isAtEnd)
    }

    @Test func `a search of one wide level goes on where it was, whatever leaves and comes`() throws {
        var generator = SplitMix(state: 5)
        var tree = RetainedTree()
        let topics = try (0..<200).map { try #require(TopicName("r/\($0)/x")) }
        for (number, topic) in topics.enumerated() { tree.insert(topic, value: UInt32(number)) }
        var walk = RetainedTree.Walk(try #require(TopicFilter("r/+/x")))
        var found: [UInt32] = []
        var stayed = Set(0..<200)
        for _ in 0..<10_000 where !walk.isAtEnd {
            var steps = Int.random(in: 1...5, using: &generator)
            tree.forEachMatch(in: &walk, steps: &steps) { value in
                // This record is now used for another topic. The caller of a search must check the topic.
                if value != 5_000 { found.append(value) }
                return true
            }
            // Neighbours of the topic that was found last are removed. Some of their records are used again, here or
            // elsewhere.
            let near = (Int(found.last ?? 199) - 2)..<(Int(found.last ?? 199) + 1)
            for number in near where number >= 0 && stayed.remove(number) != nil {
                tree.remove(topics[number])
                if number % 3 == 0 { tree.insert(topics[number], value: UInt32(number) + 1_000) }
                if number % 3 == 1 { tree.insert(try #require(TopicName("other/\(number)/x")), value: 5_000) }
            }
            #expect(walk.bytes < 1_000)
        }
        #expect(walk.isAtEnd)
        #expect(Set(found).count == found.count, "nothing comes twice")
        #expect(stayed.isSubset(of: found.map(Int.init)), "nothing that stayed is left out")
    }

    @Test func `above lowered bounds, a message may be replaced by one that takes no more`() throws {
        let retained = RetainedMessages(messages: SharedLimit(1), bytes: SharedLimit(10))
        retained.load([try publication("a", "long"), try publication("b", "long")])
        #expect(try retained.begin(publication("a", "next")))
        #expect(try !retained.begin(publication("a", "longer")))
        #expect(try !retained.begin(publication("c", "x")))
        #expect(try retained.begin(publication("b", "")))
    }

    @Test func `what is being stored when a search begins is found`() throws {
        let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(1 << 20))
        let first = try publication("t", "first")
        #expect(retained.begin(first))
        var search = retained.search(try #require(TopicFilter("t")))
        retained.finish(first, isStored: true)
        var steps = 100
        #expect(retained.next(&search, now: now, limit: 9, steps: &steps).count == 1)
    }

    @Test func `every publication that stays is in one page`() throws {
        let retained = RetainedMessages(messages: SharedLimit(100_000), bytes: SharedLimit(1 << 30))
        let names = (0..<30_000).map { $0 % 10_000 == 9_999 ? "rare/\($0)" : "r/\($0)" }
        retained.load(try names.map { try publication($0) } + [try publication("r/old", until: 1_000)])
        // A few publications are returned at once and in order, however many others there are.
        let rare = retained.page(of: try #require(TopicFilter("rare/+")), behind: 0, now: now, limit: 3)
        #expect(rare.found.map(\.topic.rawValue) == ["rare/19999", "rare/29999", "rare/9999"] && rare.next == nil)
        let one = retained.page(of: try #require(TopicFilter("r/7")), behind: 0, now: now, limit: 1)
        #expect(one.found.map(\.topic.rawValue) == ["r/7"] && one.next == nil)
        // Many publications are returned page by page, while others are added and removed.
        let filter = try #require(TopicFilter("#"))
        var (seen, place, pages): ([String], Int?, Int) = ([], 0, 0)
        while let here = place {
            let (found, next) = retained.page(of: filter, behind: here, now: now, limit: 1_000)
            #expect(found.count <= 1_000 && next.map { $0 > here } ?? true)
            seen += found.map(\.topic.rawValue)
            for change in [try publication("r/\(pages)", ""), try publication("new/\(pages)")] {
                #expect(retained.begin(change))
                retained.finish(change, isStored: true)
            }
            (place, pages) = (next, pages + 1)
        }
        #expect(pages >= 30 && Set(seen).count == seen.count && !seen.contains("r/old"))
        #expect(Set(names).subtracting((0..<pages).map { "r/\($0)" }).isSubset(of: seen))
        // A page ends after a bounded number of places, even if nothing was found.
        let none = retained.page(of: try #require(TopicFilter("+/29998")), behind: 1, now: now, limit: 9)
        #expect(none.found.isEmpty && none.next == 20_001)
        #expect(retained.page(of: filter, behind: .max, now: now, limit: 9).next == nil)
        #expect(retained.page(of: filter, behind: .min, now: now, limit: 9).found.count == 9)
    }

    @Test func `topics are not normalised`() throws {
        let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(1 << 20))
        for name in ["caf\u{E9}/x", "cafe\u{301}/x", "a/\u{301}/b", "a/b"] {
            #expect(try retained.begin(publication(name, "x")))
        }
        #expect(try texts(retained, "#").count == 4)
        #expect(try texts(retained, "caf\u{E9}/+").count == 1)
        #expect(try texts(retained, "a/+/b").count == 1)
        #expect(try texts(retained, "a/+").count == 1)
    }

    @Test func `deep topics count for their levels`() throws {
        let deep = try publication([String](repeating: "a", count: 10_000).joined(separator: "/"))
        let bytes = 64 * 10_000 + 320 + deep.weight
        for room in [bytes - 1, bytes] {
            let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(room))
            #expect(retained.begin(deep) == (room == bytes))
        }
    }

    @Test func `a publication that expires counts for the record of its expiry`() throws {
        let expiring = try publication("a", until: now.rawValue + 1_000)
        let bytes = 64 + 320 + 160 + expiring.weight
        for room in [bytes - 1, bytes] {
            let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(room))
            #expect(retained.begin(expiring) == (room == bytes))
        }
    }

    @Test func `there are limits`() throws {
        let weight = RetainedMessages.weight(try publication("a"))
        let retained = RetainedMessages(messages: SharedLimit(3), bytes: SharedLimit(weight * 2))
        #expect(try retained.begin(publication("a")))
        #expect(try retained.begin(publication("b")))
        #expect(try !retained.begin(publication("c")))
        #expect(try retained.begin(publication("b", "y")), "in place of another")
        #expect(try !retained.begin(publication("b", "yy")))
        #expect(try retained.begin(publication("a", "")), "a removal needs no room")
        #expect(try retained.begin(publication("c")))
        #expect(try texts(retained, "#") == ["b=y", "c=x"])
        #expect(retained.statistics.count == 2)
        #expect(retained.statistics.bytes == weight * 2)
        #expect(retained.statistics.refused == 2)
    }

    @Test func `what expires is not found`() throws {
        let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(1 << 20))
        retained.load([try publication("a", until: 1_000), try publication("b", until: 1_001), try publication("c")])
        #expect(try texts(retained, "#") == ["b=x", "c=x"])
        #expect(retained.statistics.count == 3)
        retained.expire(now: now)
        #expect(retained.statistics.count == 2)
        #expect(retained.matching(try #require(TopicFilter("#")), now: now, limit: 1).count == 1)
    }

    @Test func `only publications that have expired are examined`() throws {
        let retained = RetainedMessages(messages: SharedLimit(20_000), bytes: SharedLimit(1 << 30))
        for number in 0..<10_000 {
            let expiry: Int64 = number == 5_000 ? 1_000 : 2_000
            retained.load([try publication("a/\(number)", until: expiry)])
        }
        #expect(retained.expire(now: now) == 1)
        #expect(retained.statistics.count == 9_999)
        #expect(retained.expire(now: now) == 0)
        // A publication that is not stored yet does not expire before its write has ended.
        let pending = try publication("b", until: 900)
        #expect(retained.begin(pending))
        retained.expire(now: now)
        #expect(retained.statistics.count == 10_000)
        retained.finish(pending, isStored: true)
        #expect(retained.expire(now: now) == 1)
        #expect(retained.statistics.count == 9_999)
        // A publication that was replaced does not expire any more.
        let lasting = try publication("a/1")
        #expect(retained.begin(lasting))
        retained.finish(lasting, isStored: true)
        #expect(retained.expire(now: Timestamp(rawValue: 2_000)) == 9_998)
        #expect(retained.statistics.count == 1)
    }

    @Test func `a topic with very many levels is taken`() throws {
        let retained = RetainedMessages(messages: SharedLimit(10), bytes: SharedLimit(1 << 20))
        let deep = String(repeating: "/", count: 65_000)
        retained.load([try publication(deep)])
        #expect(retained.matching(try #require(TopicFilter("#")), now: now).count == 1)
        #expect(retained.publication(of: try #require(TopicName(deep))) != nil)
    }
}

extension RetainedTree {
    /// The number of records in use.
    fileprivate var footprint: Int { nodes.count - freeNodes.count + edges.count + levels.count }
}
