// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

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

    @Test(arguments: ["", "a/#/b", "a+", "+a", "#a", "a/b#", "a\0", String(repeating: "/", count: 128)])
    func `what is no filter is refused`(text: String) {
        #expect(TopicFilter(text) == nil)
    }

    private func matches(of topic: TopicName, in tree: TopicTree) -> [UInt32] {
        var values: [UInt32] = []
        tree.forEachMatch(of: topic) { values.append($0) }
        return values.sorted()
    }
}

/// The same random numbers in every run.
private struct TreeRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
