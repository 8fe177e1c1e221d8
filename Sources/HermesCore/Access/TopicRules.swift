// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who may publish and subscribe to what: the rules of a file, then those that are built in; the first that matches
/// decides. A value; see `docs/access.md` for the file.
package struct TopicRules: Sendable {
    /// Whom a rule concerns.
    enum Subject: Sendable, Hashable {
        case all
        case anonymous
        /// By ``NickName/key``.
        case user(String)
        case client(String)
        /// A key of the HTTP API, by its name; the only subject that concerns one.
        case key(String)

        func includes(_ identity: ClientIdentity) -> Bool {
            if let key = identity.apiKey {
                guard case .key(let name) = self else { return false }
                return key.utf8.elementsEqual(name.utf8)
            }
            return switch self {
            case .all: true
            case .anonymous: identity.userName == nil
            case .user(let name): identity.userName.map { $0.utf8.elementsEqual(name.utf8) } ?? false
            case .client(let id): identity.clientID.utf8.elementsEqual(id.utf8)
            case .key: false
            }
        }
    }

    struct Rule: Sendable, Hashable {
        var isDenial: Bool
        var subject: Subject
        var actions: Set<TopicAction>
        var pattern: TopicPattern
    }

    /// The rules of the file.
    let rules: [Rule]
    /// For all anonymous clients alike; nil if the rules look at client ids.
    private let anonymous: BoundTopicRules?

    /// The built-in rules alone: everything is allowed but `$…` (`$SYS/…` may be read), `hermes/…` beyond one's own use
    /// of it, and the spaces `user/<name>/…` of others.
    package init() { self.init(rules: []) }

    init(rules: [Rule]) {
        self.rules = rules
        let looksAtClientIDs = rules.contains { rule in
            if case .client = rule.subject { return true }
            return rule.pattern.dependsOnClientID
        }
        anonymous = looksAtClientIDs ? nil : BoundTopicRules(rules, Self.builtIn, for: ClientIdentity(clientID: ""))
    }

    /// How many rules the file had.
    package var count: Int { rules.count }

    /// The rules as they are for one client: to be made once per connection, and again when the rules were replaced.
    package func bound(to identity: ClientIdentity) -> BoundTopicRules {
        if let key = identity.apiKey { return BoundTopicRules(rules, Self.builtIn(forKey: key), for: identity) }
        if identity.userName == nil, identity.claims == nil, let anonymous { return anonymous }
        return BoundTopicRules(rules, Self.builtIn, for: identity)
    }

    /// What is left for a key is decided by its scopes.
    private static func builtIn(forKey key: String) -> [Rule] {
        ["user/#", "#"].compactMap { pattern in
            guard let pattern = try? TopicPattern(pattern) else { return nil }
            return Rule(isDenial: false, subject: .key(key), actions: [.publish, .subscribe], pattern: pattern)
        }
    }

    /// Whether a client may do something.
    ///
    /// - Parameters:
    ///   - action: what.
    ///   - topicOrFilter: the topic name to publish to; the name or filter (also `$share/…`) to subscribe to.
    ///   - identity: who.
    /// - Returns: for a filter, whether every topic that it can match may be read; see ``access(toSubscribe:for:)``.
    package func allows(_ action: TopicAction, _ topicOrFilter: String, for identity: ClientIdentity) -> Bool {
        bound(to: identity).allows(action, topicOrFilter)
    }

    /// How much of what a filter matches a client may read.
    package func access(toSubscribe filter: String, for identity: ClientIdentity) -> SubscriptionAccess {
        bound(to: identity).access(toSubscribe: filter)
    }

    /// A name beginning with `$` that no built-in rule allows is denied: no allowing wildcard reaches it.
    private static let builtIn: [Rule] = {
        func rule(_ isDenial: Bool, _ actions: Set<TopicAction>, _ pattern: String) -> Rule? {
            guard let pattern = try? TopicPattern(pattern) else { return nil }
            return Rule(isDenial: isDenial, subject: .all, actions: actions, pattern: pattern)
        }
        let both: Set<TopicAction> = [.publish, .subscribe]
        let rules = [
            rule(false, [.publish], "hermes/v1/up"), rule(false, [.publish], "hermes/v1/up/json"),
            rule(false, [.subscribe], "hermes/v1/down"), rule(false, [.subscribe], "hermes/v1/down/json"),
            rule(true, both, "hermes/#"),
            rule(false, both, "user/%u/#"), rule(true, both, "user/#"),
            rule(false, [.subscribe], "$SYS/#"),
            rule(false, both, "#"),
        ]
        return rules.compactMap(\.self)
    }()
}

/// How much of what a filter matches may be read.
package enum SubscriptionAccess: Int, Sendable, Hashable, Comparable {
    /// Nothing: the subscription is refused.
    case none
    /// Perhaps not everything, as with `#`: either refused, or granted while each publication is checked before it is
    /// delivered, with ``BoundTopicRules/allows(_:_:)`` for `.subscribe` and the name of its topic.
    case some
    /// Everything: nothing is left to check.
    case all

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
