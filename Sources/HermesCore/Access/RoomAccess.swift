// Hermes
// SPDX-License-Identifier: Apache-2.0

extension BoundTopicRules {
    /// Whether a client may perform an action in a room. Every protocol uses this check. The rules for the room's topic
    /// decide.
    ///
    /// - Parameters:
    ///   - action: `.subscribe` to be in the room and get its events; `.publish` to send events to the room, including
    ///     the events of joining and leaving.
    ///   - room: the room.
    package func may(_ action: TopicAction, _ room: RoomName) -> Bool { allows(action, room.topic.rawValue) }

    /// Returns the error for a client that may not perform the action.
    package static func refusal(_ action: TopicAction, _ room: RoomName) -> HermesError {
        switch action {
        case .subscribe: HermesError(.forbidden, "the rules do not let you into the room \(room)")
        case .publish: HermesError(.forbidden, "the rules do not let you say anything in the room \(room)")
        }
    }
}

extension ClientIdentity {
    /// Creates the identity of a client whose protocol has no client ids: the device's id replaces the client id.
    package init(_ principal: Principal) {
        self.init(principal: principal, userName: principal.nickName.key, clientID: principal.device.rawValue)
    }
}

/// The rules for one client. They are rebuilt when the rules or the identity change. The connection's event loop owns
/// them.
package struct ClientAccess {
    private var rules: BoundTopicRules?
    private var generation: UInt64 = 0
    /// The last answer about sending to a room. The answer is kept because it is needed again for every text in the
    /// room.
    private var talk: (room: RoomName, isAllowed: Bool)?

    package init() {}

    /// Whether the client may perform an action in a room; see ``BoundTopicRules/may(_:_:)``.
    package mutating func may(
        _ action: TopicAction,
        _ room: RoomName,
        _ identity: @autoclosure () -> ClientIdentity,
        by access: TopicAccess
    ) -> Bool {
        let rules = rules(of: identity(), by: access)
        guard action == .publish else { return rules.may(action, room) }
        if let talk, talk.room == room { return talk.isAllowed }
        let isAllowed = rules.may(action, room)
        talk = (room, isAllowed)
        return isAllowed
    }

    /// Whether the client may publish to a topic, or receive publications to it; see ``BoundTopicRules/allows(_:_:)``.
    package mutating func allows(
        _ action: TopicAction,
        _ topic: TopicName,
        _ identity: @autoclosure () -> ClientIdentity,
        by access: TopicAccess
    ) -> Bool {
        rules(of: identity(), by: access).allows(action, topic)
    }

    /// - Parameters:
    ///   - identity: the client; evaluated when the rules are built.
    ///   - access: the current rules.
    private mutating func rules(
        of identity: @autoclosure () -> ClientIdentity,
        by access: TopicAccess
    ) -> BoundTopicRules {
        let current = access.generation
        if let rules, generation == current { return rules }
        let bound = access.current.bound(to: identity())
        rules = bound
        talk = nil
        generation = current
        return bound
    }

    /// Forgets the rules. Call this when the identity or its name changes.
    package mutating func forget() { rules = nil }
}
