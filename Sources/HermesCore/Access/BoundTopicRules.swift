// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topic rules for one client. They are checked on event loops, so a check takes no lock and does not wait.
package final class BoundTopicRules: Sendable {
    private let publish: [BoundTopicPattern]
    private let subscribe: [BoundTopicPattern]
    private let publishClaims: [BoundTopicPattern]?
    private let subscribeClaims: [BoundTopicPattern]?
    /// Whether only the built-in rules apply to the client. The built-in rules allow every topic that is not reserved.
    private let areBuiltInAlone: Bool

    init(_ rules: [TopicRules.Rule], _ builtIn: [TopicRules.Rule], for identity: ClientIdentity) {
        func bound(_ rules: [TopicRules.Rule], _ action: TopicAction) -> [BoundTopicPattern] {
            rules.compactMap { rule in
                guard rule.actions.contains(action), rule.subject.includes(identity) else { return nil }
                return rule.pattern.bound(to: identity, isDenial: rule.isDenial)
            }
        }
        func claims(_ filters: [TopicFilter]?) -> [BoundTopicPattern]? {
            filters?.map { BoundTopicPattern(levels: BoundTopicPattern.levels(of: $0), isDenial: false) }
        }
        let ownPublish = bound(rules, .publish)
        let ownSubscribe = bound(rules, .subscribe)
        publish = ownPublish + bound(builtIn, .publish)
        subscribe = ownSubscribe + bound(builtIn, .subscribe)
        publishClaims = claims(identity.claims?.publish)
        subscribeClaims = claims(identity.claims?.subscribe)
        areBuiltInAlone = ownPublish.isEmpty && ownSubscribe.isEmpty && identity.claims == nil
    }

    /// Whether the client may perform an action; see ``TopicRules/allows(_:_:for:)``.
    package func allows(_ action: TopicAction, _ topicOrFilter: String) -> Bool {
        guard !topicOrFilter.isEmpty else { return false }
        if Self.hasWildcard(topicOrFilter) || SharedFilter.isShared(topicOrFilter) {
            return action == .subscribe && access(toSubscribe: topicOrFilter) == .all
        }
        return allows(action, topic: topicOrFilter)
    }

    /// Whether the client may perform an action on a topic. The topic name has no wildcards.
    package func allows(_ action: TopicAction, _ topic: TopicName) -> Bool { allows(action, topic: topic.rawValue) }

    private func allows(_ action: TopicAction, topic: String) -> Bool {
        if areBuiltInAlone, let first = topic.utf8.first, !Self.mayBeReserved(first) { return true }
        switch action {
        case .publish: return Self.decides(publish, publishClaims, topic)
        case .subscribe: return Self.decides(subscribe, subscribeClaims, topic)
        }
    }

    /// Returns the part of a filter's topics that the client may read.
    ///
    /// - Parameter filter: a topic filter, or a shared subscription `$share/<group>/<filter>`.
    /// - Returns: the access; `.none` if the filter is invalid.
    package func access(toSubscribe filter: String) -> SubscriptionAccess {
        var text = filter[...]
        if SharedFilter.isShared(filter) {
            let parts = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return .none }
            text = Substring(parts[2])
        }
        guard let filter = TopicFilter(String(text)) else { return .none }
        return access(to: filter)
    }

    /// Returns the part of a filter's topics that the client may read.
    package func access(to filter: TopicFilter) -> SubscriptionAccess {
        if areBuiltInAlone, let first = filter.rawValue.utf8.first, !Self.mayBeReserved(first) { return .all }
        let levels = BoundTopicPattern.levels(of: filter)
        let byRules = Self.access(subscribe, levels)
        guard let claims = subscribeClaims else { return byRules }
        if claims.contains(where: { $0.covers(levels) }) { return byRules }
        return claims.contains(where: { $0.overlaps(levels) }) ? min(byRules, .some) : .none
    }

    /// Whether a topic with this first byte may be reserved, or a filter with this first byte may match a reserved
    /// topic.
    private static func mayBeReserved(_ first: UInt8) -> Bool {
        switch first {
        case UInt8(ascii: "$"), UInt8(ascii: "h"), UInt8(ascii: "i"), UInt8(ascii: "q"), UInt8(ascii: "u"),
            UInt8(ascii: "+"), UInt8(ascii: "#"):
            true
        default: false
        }
    }

    private static func hasWildcard(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
    }

    private static func decides(
        _ patterns: [BoundTopicPattern],
        _ claims: [BoundTopicPattern]?,
        _ topic: String
    ) -> Bool {
        guard let first = patterns.first(where: { $0.matches(topic) }), !first.isDenial else { return false }
        guard let claims else { return true }
        return claims.contains { $0.matches(topic) }
    }

    private static func access(
        _ patterns: [BoundTopicPattern],
        _ filter: [BoundTopicPattern.Level]
    ) -> SubscriptionAccess {
        var isAllowedSomewhere = false
        var isDeniedSomewhere = false
        for pattern in patterns {
            switch (pattern.isDenial, pattern.covers(filter)) {
            case (true, true): return isAllowedSomewhere ? .some : .none
            case (false, true): return isDeniedSomewhere ? .some : .all
            case (true, false): if pattern.overlaps(filter) { isDeniedSomewhere = true }
            case (false, false): if pattern.overlaps(filter) { isAllowedSomewhere = true }
            }
        }
        // Without a matching rule, access is denied.
        return isAllowedSomewhere ? .some : .none
    }
}
