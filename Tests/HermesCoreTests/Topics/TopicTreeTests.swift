// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct TopicTreeTests {
    static let texts = ["a", "b", "", "$SYS", "é", "+", "#"]

    @Test(arguments: [
        ("sport/tennis/player1/#", "sport/tennis/player1", true),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
        ("sport/#", "sport", true), ("#", "a/b", true), ("sport/tennis/+", "sport/tennis/player1", true),
        ("sport/tennis/+", "sport/tennis/player1/ranking", false), ("sport/+", "sport", false),
        ("sport/+", "sport/", true), ("+/+", "/finance", true), ("/+", "/finance", true), ("+", "/finance", false),
        ("#", "$SYS/a", false), ("+/monitor/Clients", "$SYS/monitor/Clients", false), ("$SYS/#", "$SYS/", true),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", true), ("ACCOUNTS", "Accounts", false),
    ])
    func `the examples of the standard`(filter: String, topic: String, expected: Bool) throws {
        let filter = try #require(TopicFilter(filter))
        let topic = try #require(TopicName(topic))
        var tree = TopicTree()
        tree.insert(filter, value: 1)
        #expect(matches(of: topic, in: tree) == (expected ? [1] : []))
        #expect(filter.matches(topic) == expected)
    }

    @Test func `random filters and topics match as the definition says, while filters come and go`() throws {
        var random = TreeRandom(state: 42)
        var tree = TopicTree()
        var filters: [TopicFilter: UInt32] = [:]
        for step in 0..<6_000 {
            let text = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                Self.texts[Int.random(in: Self.texts.indices, using: &random)]
            }.joined(separator: "/")
            if let filter = TopicFilter(text) {
                if Bool.random(using: &random) {
                    #expect(
                        tree.insert(filter, value: UInt32(step)) == filters.updateValue(UInt32(step), forKey: filter)
                    )
                } else {
                    #expect(tree.remove(filter) == filters.removeValue(forKey: filter))
                }
                #expect(tree.value(of: filter) == filters[filter])
            }
            #expect(tree.count == filters.count)
            if let topic = TopicName(text) {
                let expected = filters.filter { $0.key.matches(topic) }.map(\.value).sorted()
                #expect(matches(of: topic, in: tree) == expected, "\(topic)")
            }
        }
        for filter in filters.keys { tree.remove(filter) }
        #expect(tree.isEmpty)
        #expect(tree.footprint == TopicTree().footprint, "nothing is left behind")
    }

    @Test(arguments: ["", "a/#/b", "a+", "+a", "#a", "a/b#", "a\0", String(repeating: "/", count: 128) + "+"])
    func `what is no filter is refused`(text: String) {
        #expect(TopicFilter(text) == nil)
    }

    @Test func `a topic is as deep as its bytes allow, and costs no more than the filters reach`() throws {
        let deep = String(repeating: "/", count: 32_000)
        let topic = try #require(TopicName(deep))
        #expect(try #require(TopicFilter(deep)).matches(topic))
        let wildcard = deep + "#"
        #expect(TopicFilter(wildcard) == nil)
        var tree = TopicTree()
        tree.insert(try #require(TopicFilter(wildcard, maxLevels: 40_000)), value: 1)
        tree.insert(try #require(TopicFilter("#")), value: 2)
        tree.insert(try #require(TopicFilter("+/+/#")), value: 3)
        tree.insert(try #require(TopicFilter("+/+")), value: 4)
        tree.insert(try #require(TopicFilter(deep, maxLevels: 40_000)), value: 5)
        #expect(matches(of: topic, in: tree) == [1, 2, 3, 5])
        #expect(matches(of: try #require(TopicName("/")), in: tree) == [2, 3, 4])
    }

    @Test func `names are compared byte by byte`() throws {
        let composed = "caf\u{e9}"
        let decomposed = "cafe\u{301}"
        #expect(composed == decomposed, "to Swift's strings they are the same")
        #expect(TopicName(composed) != TopicName(decomposed))
        #expect(TopicFilter(composed) != TopicFilter(decomposed))
        var tree = TopicTree()
        tree.insert(try #require(TopicFilter(composed + "/+")), value: 1)
        tree.insert(try #require(TopicFilter(decomposed + "/+")), value: 2)
        #expect(matches(of: try #require(TopicName(composed + "/a")), in: tree) == [1])
        #expect(matches(of: try #require(TopicName(decomposed + "/a")), in: tree) == [2])
    }

    @Test func `many filters come and go, and nothing is left behind`() throws {
        var tree = TopicTree()
        let filters = try (0..<20_000).map { number in
            let texts = ["+/\(number)/a", "device/\(number % 100)/\(number)/#", "x\(number)/+/+"]
            return try #require(TopicFilter(texts[number % 3]))
        }
        for (number, filter) in filters.enumerated() { tree.insert(filter, value: UInt32(number)) }
        #expect(tree.count == filters.count)
        for number in 0..<1_000 {
            let topic = "device/\(number % 100)/\(number)/b"
            let expected = number % 3 == 1 ? [UInt32(number)] : []
            #expect(matches(of: try #require(TopicName(topic)), in: tree) == expected)
        }
        for filter in filters.reversed() { #expect(tree.remove(filter) != nil) }
        #expect(tree.isEmpty)
        #expect(tree.footprint == TopicTree().footprint)
    }

    private func matches(of topic: TopicName, in tree: TopicTree) -> [UInt32] {
        var values: [UInt32] = []
        tree.forEachMatch(of: topic) { values.append($0) }
        return values.sorted()
    }
}

/// A generator of the same random numbers in every run.
struct TreeRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}

extension TopicTree {
    /// The number of records of all kinds in use.
    fileprivate var footprint: Int { nodes.count - freeNodes.count + edges.count + levels.count + exact.count }
}
