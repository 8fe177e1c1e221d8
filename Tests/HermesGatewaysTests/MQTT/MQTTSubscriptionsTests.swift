// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@testable import HermesGateways

struct MQTTSubscriptionsTests {
    private func filter(_ text: String) throws -> MQTTFilter { try #require(MQTTFilter(text)) }

    private static func lease() -> ShapeLease { ShapeLease(ShapeBudget(), of: .server) }

    private func held(_ qos: QoS = .atMostOnce, isFiltered: Bool = false) -> MQTTHeldSubscription {
        var options = SubscriptionOptions()
        options.qos = qos
        options.isFiltered = isFiltered
        return MQTTHeldSubscription(options: options)
    }

    // MARK: Filters

    @Test func `a shared subscription has a group, and matches by the rest`() throws {
        let shared = try filter("$share/group/a/+/c")
        #expect(shared.text == TopicText("$share/group/a/+/c") && shared.group == "group")
        #expect(shared.filter == TopicFilter("a/+/c") && shared.shape == TopicShape(of: "$share/group/a/+/c"))
        let plain = try filter("a/+/c")
        #expect(plain.group == nil && plain.filter == TopicFilter("a/+/c") && plain.shape == TopicShape(of: "a/+/c"))
        for text in ["", "a+", "#/a", "$share/group/", "$share/group/a+"] { #expect(MQTTFilter(text) == nil) }
    }

    // MARK: Bounds

    @Test func `there is room for so many subscriptions and so many bytes`() throws {
        var subscriptions = MQTTSubscriptions()
        subscriptions.hold(try filter("12345"), held())
        func hasRoom(_ text: String, _ granted: (Int, Int), _ maxCount: Int, _ maxBytes: Int) throws -> Bool {
            let granted = (count: granted.0, bytes: granted.1)
            return subscriptions.hasRoom(
                for: try filter(text),
                besides: granted,
                maxCount: maxCount,
                maxBytes: maxBytes
            )
        }
        #expect(try hasRoom("678", (0, 0), 2, 8))
        #expect(try !hasRoom("6789", (0, 0), 2, 8))
        #expect(try !hasRoom("678", (0, 0), 1, 8))
        #expect(try !hasRoom("678", (1, 0), 2, 8))
        #expect(try hasRoom("678", (1, 2), 3, 10))
        #expect(try !hasRoom("678", (1, 3), 3, 10))
    }

    @Test func `a costly shape needs room among those of all clients`() throws {
        let budget = ShapeBudget(SharedLimit(8))
        var (one, two) = (MQTTSubscriptions(), MQTTSubscriptions())
        let lease = { ShapeLease(budget, of: .server) }
        let wide = try filter("+/+/+/a/b")
        #expect(one.reserve(wide.shape, newLease: lease) == true)
        one.hold(wide, held())
        #expect(two.reserve(wide.shape, newLease: lease) == true, "it is there already")
        let other = try filter("$share/g/a/+/+/+")
        #expect(two.reserve(other.shape, newLease: lease) == false)
        #expect(two.reserve(try filter("a/+/+/c").shape, newLease: lease) == true, "others are free")
        two.giveBack(wide.shape)
        #expect(two.reserve(other.shape, newLease: lease) == false, "the first client has it")
        one.end(wide.text)
        #expect(two.reserve(other.shape, newLease: lease) == true)
        // A client that has ended has released all its shapes.
        one = MQTTSubscriptions()
        two = MQTTSubscriptions()
        #expect(budget.levels == 0)
    }

    @Test func `there are so many shapes, and the last filter of one frees it`() throws {
        var subscriptions = MQTTSubscriptions()
        var texts: [String] = []
        for bits in 1...MQTTSubscriptions.maxShapes {
            texts.append((0..<8).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/"))
        }
        for text in texts {
            let shape = try filter(text).shape
            #expect(subscriptions.reserve(shape, newLease: Self.lease) == true)
            subscriptions.hold(try filter(text), held())
        }
        let another = try filter("a/#").shape
        #expect(subscriptions.reserve(another, newLease: Self.lease) == false)
        let like = try filter(String(texts[0].map { $0 == "a" ? "b" : $0 }))
        #expect(subscriptions.reserve(like.shape, newLease: Self.lease) == true)
        subscriptions.end(TopicText(texts[0]))
        #expect(subscriptions.reserve(another, newLease: Self.lease) == false)
        subscriptions.giveBack(like.shape)
        #expect(subscriptions.reserve(another, newLease: Self.lease) == true)
        // The shapes of a durable session are always restored, regardless of their number.
        subscriptions.restore(try filter("a/b/#").shape, newLease: Self.lease)
        subscriptions.giveBack(another)
        #expect(subscriptions.reserve(another, newLease: Self.lease) == false)
    }

    // MARK: Rules

    @Test func `messages that wait are asked about after their subscription has ended, too`() throws {
        var subscriptions = MQTTSubscriptions()
        subscriptions.hold(try filter("a"), held())
        subscriptions.end(TopicText("a"))
        #expect(subscriptions.filterAll().isEmpty)
        #expect(subscriptions.hasFiltered)
    }

    @Test func `subscriptions that match too much are noted, and again if the rules change`() throws {
        var subscriptions = MQTTSubscriptions()
        for text in ["a", "b", "c"] { subscriptions.hold(try filter(text), held()) }
        #expect(!subscriptions.hasFiltered)
        #expect(Set(subscriptions.filterAll().map(\.rawValue)) == ["a", "b", "c"])
        #expect(subscriptions.hasFiltered && subscriptions.held.values.allSatisfy(\.options.isFiltered))
        for text in ["a", "c", "never"] { subscriptions.filter(TopicText(text), false) }
        #expect(subscriptions.count == 3)
        func filtered() -> Set<String> {
            Set(subscriptions.held.filter { $0.value.options.isFiltered }.keys.map(\.rawValue))
        }
        #expect(filtered() == ["b"])
        for text in ["a", "b", "c"] { subscriptions.filter(TopicText(text), text != "b") }
        #expect(filtered() == ["a", "c"])
        subscriptions.change(TopicText("b"), held(.exactlyOnce, isFiltered: true).options)
        #expect(filtered() == ["a", "b", "c"] && subscriptions[TopicText("b")]?.options.qos == .exactlyOnce)
        subscriptions.change(TopicText("never"), held().options)
        #expect(subscriptions.count == 3)
    }

    // MARK: Against a model

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `random subscriptions cost what their texts say`(_ seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let texts = ["a", "b/c", "+", "#", "a/+", "b/+", "a/#", "+/+/c", "$share/g/a", "$share/g/+/#", "$share/h/+/#"]
        var subscriptions = MQTTSubscriptions()
        var model: [String: QoS] = [:]
        for _ in 0..<250 {
            let text = try #require(texts.randomElement(using: &random))
            let filter = try filter(text)
            let qos: QoS = Bool.random(using: &random) ? .atMostOnce : .atLeastOnce
            switch UInt8.random(in: 0..<3, using: &random) {
            case 0:
                let isNew = subscriptions[filter.text] == nil
                try #require(isNew == (model[text] == nil))
                if isNew { try #require(subscriptions.reserve(filter.shape, newLease: Self.lease) == true) }
                subscriptions.hold(filter, held(qos))
                model[text] = qos
            case 1:
                subscriptions.change(filter.text, held(qos).options)
                if model[text] != nil { model[text] = qos }
            default:
                let ended = subscriptions.end(filter.text)
                let expected = model.removeValue(forKey: text)
                try #require(ended?.options.qos == expected)
            }
            try #require(subscriptions.count == model.count)
            for (text, qos) in model { try #require(subscriptions[TopicText(text)]?.options.qos == qos) }
            let levels = model.keys.reduce(0) { sum, text in
                sum + (text.contains("+") || text.contains("#") ? text.filter { $0 == "/" }.count + 1 : 0)
            }
            let bytes = 2 * model.keys.reduce(0) { $0 + $1.utf8.count } + 416 * model.count
            try #require(subscriptions.bytes(loops: 1) == bytes + 48 * levels)
            try #require(subscriptions.bytes(loops: 4) == bytes + 4 * 48 * levels)
        }
        for text in model.keys { subscriptions.end(TopicText(text)) }
        // Now all shapes are free again.
        for bits in 1...MQTTSubscriptions.maxShapes {
            let text = (0..<8).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/")
            try #require(subscriptions.reserve(TopicShape(of: text), newLease: Self.lease) == true)
        }
    }
}
