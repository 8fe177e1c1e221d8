// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

struct TopicShapesTests {
    @Test
    func `filters with their wildcards at the same levels have one shape, exact and shared ones none`() {
        var shapes = TopicShapes()
        for filter in ["a/+/c", "b/+/d", "b/+", "a/b", "x", "$share/g/+/+/#", "+/b", "a/#", "a/b/#", "b/#", "#", "+"] {
            #expect(shapes.take(TopicShape(of: filter), limit: 6) == true)
        }
        // The shapes are those of x/+, +/x, x/#, x/y/# and #. The filter + has the same shape as +/x.
        #expect(shapes.count == 5)
        #expect(shapes.take(TopicShape(of: "+/+"), limit: 6) == true)
        #expect(shapes.take(TopicShape(of: "+/#"), limit: 6) == false)
        #expect(shapes.take(TopicShape(of: "q/+"), limit: 6) == true)
    }

    @Test
    func `a shape is free again once its last filter is gone`() {
        var shapes = TopicShapes()
        for filter in ["a/+", "b/+"] { #expect(shapes.take(TopicShape(of: filter), limit: 1) == true) }
        #expect(shapes.take(TopicShape(of: "+"), limit: 1) == false)
        shapes.giveBack(TopicShape(of: "a/+"))
        shapes.giveBack(TopicShape(of: "never/there/+"))
        #expect(shapes.take(TopicShape(of: "+"), limit: 1) == false)
        shapes.giveBack(TopicShape(of: "b/+"))
        #expect(shapes.take(TopicShape(of: "+"), limit: 1) == true)
        #expect(shapes.count == 1)
    }

    @Test
    func `no topic matches more filters than there are shapes`() throws {
        var shapes = TopicShapes()
        var matching = 0
        let topic = try #require(TopicName("a/a/a/a/a/a/a/a/a/a"))
        for bits in 0..<1_024 {
            let filter = (0..<10).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/")
            guard shapes.take(TopicShape(of: filter), limit: 128) else { continue }
            if try #require(TopicFilter(filter)).matches(topic) { matching += 1 }
        }
        // The count includes the filter without wildcards.
        #expect(matching == 129)
    }

    @Test
    func `the check of a filter finds the same shape as a walk of its own, also of a shared one`() throws {
        for filter in ["a", "a/b", "+", "#", "a/+/c", "a/+/#", "+/+", "/", "//+", "sport/+/player/#", "é/+"] {
            let found = try #require(TopicFilter.withShape(filter))
            #expect(found.filter == TopicFilter(filter) && found.shape == TopicShape(of: filter))
            #expect(found.shape.shared == TopicShape(of: "$share/group/" + filter))
            let levels = filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).count
            #expect(found.shape.levels == (found.filter.hasWildcard ? levels : 0))
        }
        for filter in ["", "a+", "#/a", "a/#/b", "+a", "\u{0}"] { #expect(TopicFilter.withShape(filter) == nil) }
        let deepest = Array(repeating: "+", count: TopicFilter.maxLevels).joined(separator: "/")
        #expect(TopicFilter.withShape(deepest)?.shape.levels == TopicFilter.maxLevels)
        #expect(TopicFilter.withShape(deepest + "/+") == nil)
    }
}
