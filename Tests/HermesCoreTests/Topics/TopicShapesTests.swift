// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

struct TopicShapesTests {
    @Test("Filters with their wildcards at the same levels have one shape, exact and shared ones none")
    func shapes() {
        var shapes = TopicShapes()
        for filter in ["a/+/c", "b/+/d", "b/+", "a/b", "x", "$share/g/+/+/#", "+/b", "a/#", "a/b/#", "b/#", "#", "+"] {
            #expect(shapes.take(filter, limit: 6) == true)
        }
        // x/+, +/x, x/#, x/y/#, # and +, of which the last is like +/x.
        #expect(shapes.count == 5)
        #expect(shapes.take("+/+", limit: 6) == true)
        #expect(shapes.take("+/#", limit: 6) == false)
        #expect(shapes.take("q/+", limit: 6) == true)
    }

    @Test("A shape is free again once its last filter is gone")
    func givingBack() {
        var shapes = TopicShapes()
        for filter in ["a/+", "b/+"] { #expect(shapes.take(filter, limit: 1) == true) }
        #expect(shapes.take("+", limit: 1) == false)
        shapes.giveBack("a/+")
        shapes.giveBack("never/there/+")
        #expect(shapes.take("+", limit: 1) == false)
        shapes.giveBack("b/+")
        #expect(shapes.take("+", limit: 1) == true)
        #expect(shapes.count == 1)
    }

    @Test("No topic matches more filters than there are shapes")
    func bound() throws {
        var shapes = TopicShapes()
        var matching = 0
        let topic = try #require(TopicName("a/a/a/a/a/a/a/a/a/a"))
        for bits in 0..<1_024 {
            let filter = (0..<10).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/")
            guard shapes.take(filter, limit: 128) else { continue }
            if try #require(TopicFilter(filter)).matches(topic) { matching += 1 }
        }
        // And the one without wildcards.
        #expect(matching == 129)
    }
}
