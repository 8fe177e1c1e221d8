// Hermes
// SPDX-License-Identifier: Apache-2.0

extension BoundTopicRules {
    /// Whether a client may do something in a room: the question that every protocol asks, with the answer that the rules
    /// give for the room's topic.
    ///
    /// - Parameters:
    ///   - action: `.subscribe`: be in it and hear what is said; `.publish`: say something there, also that one comes and
    ///     goes.
    ///   - room: where.
    package func may(_ action: TopicAction, _ room: RoomName) -> Bool { allows(action, room.topic.rawValue) }

    /// What a client is told that may not.
    package static func refusal(_ action: TopicAction, _ room: RoomName) -> HermesError {
        switch action {
        case .subscribe: HermesError(.forbidden, "the rules do not let you into the room \(room)")
        case .publish: HermesError(.forbidden, "the rules do not let you say anything in the room \(room)")
        }
    }
}

extension TopicAccess {
    /// Whether somebody may do something in a room, by the rules in force. For who asks once; a connection keeps a
    /// ``ClientAccess``.
    package func may(_ identity: ClientIdentity, _ action: TopicAction, _ room: RoomName) -> Bool {
        current.bound(to: identity).may(action, room)
    }
}

extension ClientIdentity {
    /// An account over a protocol without client ids, where the device's id takes the place of one.
    package init(_ principal: Principal) {
        self.init(principal: principal, userName: principal.nickName.key, clientID: principal.device.rawValue)
    }
}

/// The rules for one client, made anew once others are in force or it is somebody else. Owner: the connection's event loop.
package struct ClientAccess {
    private var rules: BoundTopicRules?
    private var generation: UInt64 = 0
    /// The last answer about saying something: asked for each text.
    private var talk: (room: RoomName, isAllowed: Bool)?

    package init() {}

    /// Whether the client may do something in a room; see ``BoundTopicRules/may(_:_:)``.
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

    /// - Parameters:
    ///   - identity: who the client is; asked for where the rules are made.
    ///   - access: the rules in force.
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

    /// The client is somebody else from now on.
    package mutating func forget() { rules = nil }
}
