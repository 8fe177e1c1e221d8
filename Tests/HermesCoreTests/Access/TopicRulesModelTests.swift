// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

/// Compares random rules with the definition: each topic by itself, and each filter by all topics that it matches.
@Suite struct TopicRulesModelTests {
    private static let names = ["a", "b", "", "user", "hermes", "$SYS", "anna"]
    private static let filterLevels = names + ["+", "+", "#"]
    private static let patternLevels = filterLevels + ["%u", "%c", "%u%c"]

    private struct Topic {
        let name: TopicName
        /// Whether wildcards at the beginning of a filter do not match this topic.
        let isReserved: Bool
        /// A similar topic that wildcards at the beginning of a filter match.
        let plain: TopicName?

        init?(_ text: String) {
            guard let name = TopicName(text) else { return nil }
            let first = text.split(separator: "/", omittingEmptySubsequences: false).first ?? ""
            self.name = name
            isReserved = first.hasPrefix("$") || first == "hermes" || first == "user"
            plain = TopicName("x" + text)
        }
    }

    /// All topics with at most three levels from ``names``.
    private static let topics: [Topic] = {
        var all: [String] = []
        var layer = [""]
        for depth in 0..<3 {
            layer = layer.flatMap { prefix in names.map { depth == 0 ? $0 : "\(prefix)/\($0)" } }
            all += layer
        }
        return all.compactMap { Topic($0) }
    }()

    private struct Line {
        var isDenial: Bool
        var subject: String
        var action: String
        var pattern: String

        func concerns(_ identity: ClientIdentity, _ action: TopicAction) -> Bool {
            guard self.action == "readwrite" || self.action == (action == .publish ? "write" : "read") else {
                return false
            }
            switch subject {
            case "", "all": return true
            case "anonymous": return identity.userName == nil
            case "user anna": return identity.userName == "anna"
            default: return identity.clientID == "a"
            }
        }

        /// Returns the rule that the line means for a client; nil if the line does not apply to the client.
        func rule(for identity: ClientIdentity) -> Rule? {
            var text = pattern
            if text.contains("%u"), identity.userName == nil {
                guard isDenial else { return nil }
                text = text.split(separator: "/", omittingEmptySubsequences: false)
                    .map { $0.contains("%u") ? "+" : String($0) }.joined(separator: "/")
            }
            text = text.replacing("%u", with: identity.userName ?? "").replacing("%c", with: identity.clientID)
            let beginsWithWildcard = text.hasPrefix("+") || text.hasPrefix("#")
            return TopicFilter(text).map {
                Rule(isDenial: isDenial, filter: $0, beginsWithWildcard: beginsWithWildcard)
            }
        }
    }

    /// The rule that a line means for one client.
    private struct Rule {
        let isDenial: Bool
        let filter: TopicFilter
        let beginsWithWildcard: Bool

        func matches(_ topic: Topic) -> Bool {
            if beginsWithWildcard, topic.isReserved {
                guard isDenial else { return false }
                // A denial also applies to topics that begin with a dollar sign.
                if let plain = topic.plain { return filter.matches(plain) }
            }
            return filter.matches(topic.name)
        }
    }

    private static let builtIn = [
        Line(isDenial: false, subject: "", action: "write", pattern: "hermes/v1/up"),
        Line(isDenial: true, subject: "", action: "readwrite", pattern: "hermes/#"),
        Line(isDenial: false, subject: "", action: "readwrite", pattern: "user/%u/#"),
        Line(isDenial: true, subject: "", action: "readwrite", pattern: "user/#"),
        Line(isDenial: false, subject: "", action: "read", pattern: "$SYS/#"),
        Line(isDenial: false, subject: "", action: "readwrite", pattern: "#"),
    ]

    private static func text(of levels: [String], using random: inout SplitMix) -> String {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in levels.randomElement(using: &random) ?? "a" }
            .joined(separator: "/")
    }

    @Test(arguments: 1...40)
    func `rules decide as they are defined, and no filter lets through what a rule denies`(seed: Int) throws {
        var random = SplitMix(state: UInt64(seed))
        var lines: [Line] = []
        while lines.count < Int.random(in: 0...6, using: &random) {
            let pattern = Self.text(of: Self.patternLevels, using: &random)
            guard TopicFilter(pattern) != nil else { continue }
            lines.append(
                Line(
                    isDenial: Bool.random(using: &random),
                    subject: ["", "all", "anonymous", "user anna", "client a"].randomElement(using: &random) ?? "",
                    action: ["read", "write", "readwrite"].randomElement(using: &random) ?? "read",
                    pattern: pattern
                )
            )
        }
        let file = lines.map { "\($0.isDenial ? "deny" : "allow") \($0.subject) \($0.action) \($0.pattern)" }
        let rules = try TopicRules(parsing: file.joined(separator: "\n"))
        for identity in [
            ClientIdentity(clientID: "a"), ClientIdentity(userName: "anna", clientID: "b"),
            ClientIdentity(userName: "b", clientID: "a"),
        ] {
            let bound = rules.bound(to: identity)
            var readable: Set<TopicName> = []
            for action in TopicAction.allCases {
                let concerned = (lines + Self.builtIn).filter { $0.concerns(identity, action) }
                    .compactMap { $0.rule(for: identity) }
                for topic in Self.topics {
                    let isAllowed = concerned.first { $0.matches(topic) }.map { !$0.isDenial } ?? false
                    // An expectation would take a hundred times as long as the check itself.
                    if bound.allows(action, topic.name.rawValue) != isAllowed {
                        Issue.record("\(action) \(topic.name) \(identity) \(file): not \(isAllowed)")
                    }
                    if action == .subscribe, isAllowed { readable.insert(topic.name) }
                }
            }
            for _ in 0..<60 {
                guard let filter = TopicFilter(Self.text(of: Self.filterLevels, using: &random)) else { continue }
                let matched = Self.topics.map(\.name).filter(filter.matches)
                switch bound.access(toSubscribe: filter.rawValue) {
                case .all: #expect(matched.allSatisfy(readable.contains), "\(filter) \(identity) \(file)")
                case .none: #expect(!matched.contains(where: readable.contains), "\(filter) \(identity) \(file)")
                case .some: break
                }
                #expect(
                    bound.allows(.subscribe, filter.rawValue) == (bound.access(toSubscribe: filter.rawValue) == .all)
                )
            }
        }
    }
}
