// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides who may publish and subscribe to which topics. The rules of a file come first, then the built-in rules; the
/// first rule that matches decides. `docs/access.md` describes the file.
package struct TopicRules: Sendable, Equatable {
    /// The clients that a rule applies to.
    enum Subject: Sendable, Hashable {
        case all
        case anonymous
        /// The clients with this user name, in the form of ``NickName/key``.
        case user(String)
        case client(String)
        /// The key of the HTTP API with this name. This is the only subject that applies to keys.
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
    /// The rules that all anonymous clients share; nil if a rule depends on the client id.
    private let anonymous: BoundTopicRules?

    package static func == (left: Self, right: Self) -> Bool { left.rules == right.rules }

    /// Creates the built-in rules, without the rules of a file. The built-in rules allow all topics, with these
    /// exceptions:
    ///
    /// - `$…`: clients may subscribe to `$SYS/…`. Everything else is denied.
    /// - `hermes/…`: clients may use only the topics of the Hermes protocol.
    /// - `user/<name>/…`: clients may use only the topics with their own name.
    /// - `qsiop/<uid>/…` and `impb/<uid>/…`: clients may use only the topics with the uid of their own account.
    /// - `impb/broadcast`: clients may only read this topic.
    package init() { self.init(rules: []) }

    init(rules: [Rule]) {
        self.rules = rules
        let looksAtClientIDs = rules.contains { rule in
            if case .client = rule.subject { return true }
            return rule.pattern.dependsOnClientID
        }
        anonymous = looksAtClientIDs ? nil : BoundTopicRules(rules, Self.builtIn, for: ClientIdentity(clientID: ""))
    }

    /// The number of rules in the file.
    package var count: Int { rules.count }

    /// Returns the rules for one client. Call this once per connection, and again after the rules were replaced.
    package func bound(to identity: ClientIdentity) -> BoundTopicRules {
        if let key = identity.apiKey { return BoundTopicRules(rules, Self.builtIn(forKey: key), for: identity) }
        if identity.userName == nil, identity.claims == nil, let anonymous { return anonymous }
        return BoundTopicRules(rules, Self.builtIn, for: identity)
    }

    /// Returns the built-in rules for a key of the HTTP API. They allow all topics except `$…` and `hermes/…`. The
    /// scopes of the key decide what the key may do with the allowed topics.
    private static func builtIn(forKey key: String) -> [Rule] {
        ["user/#", "qsiop/#", "impb/#", "#"].compactMap { pattern in
            guard let pattern = try? TopicPattern(pattern) else { return nil }
            return Rule(isDenial: false, subject: .key(key), actions: [.publish, .subscribe], pattern: pattern)
        }
    }

    /// Whether a client may perform an action.
    ///
    /// - Parameters:
    ///   - action: the action.
    ///   - topicOrFilter: the topic name to publish to, or the name or filter to subscribe to. The filter may be a
    ///     shared subscription (`$share/…`).
    ///   - identity: the client.
    /// - Returns: for a filter, whether every matching topic may be read; see ``BoundTopicRules/access(toSubscribe:)``.
    package func allows(_ action: TopicAction, _ topicOrFilter: String, for identity: ClientIdentity) -> Bool {
        bound(to: identity).allows(action, topicOrFilter)
    }

    /// The rules that every server has. Topics that begin with `$` are allowed only by the rule for `$SYS/#`, because
    /// the wildcard of the last rule does not match such topics.
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
            rule(false, both, "qsiop/%i/#"), rule(true, both, "qsiop/#"),
            rule(false, [.subscribe], "impb/broadcast"), rule(false, both, "impb/%i/#"), rule(true, both, "impb/#"),
            rule(false, [.subscribe], "$SYS/#"),
            rule(false, both, "#"),
        ]
        return rules.compactMap(\.self)
    }()
}

/// The part of a filter's topics that may be read.
package enum SubscriptionAccess: Int, Sendable, Hashable, Comparable {
    /// None of the topics may be read: the subscription is refused.
    case none
    /// Possibly not all of the topics may be read, for example with the filter `#`. Either the subscription is refused,
    /// or it is granted and the topic of each publication is checked before delivery (``BoundTopicRules/allows(_:_:)``
    /// for `.subscribe`).
    case some
    /// All of the topics may be read: no further check is needed.
    case all

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
